"""Whether what is rare stays unusual: generated and real labelled streams, against forests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import click
import numpy as np

from faust_oslrau.app.offline.quality import alarm_curve

from . import rarities
from .contamination import Stream
from .datasets import Array
from .detectors import Forest, FrozenForest, RunningGaussian, prequential, stream_scorer
from .plan import FOLDER
from .quality import Figure
from .report import markdown, prose, write_report

WARM_UP = 48
"""Records that are not counted: the first two learning batches."""

SCORER = "scorer, p-value"

TEXT = """\
Every detector scores a record before it learns it; the first 48 records do not count. Figures are
the area under the ROC curve and the average precision, means over the streams. *Groups* are 40
generated streams in which a tight group of anomalies keeps coming, 0.3 to 10 % of the records,
beside one to five usual clusters of 3 to 30 fields. *Scattered* are 40 with lone anomalies among
heavy tails, discrete columns or correlated factors. *Sets* are real labelled sets, the first 5,000
records of each. Streams with even numbers served to choose the defaults, those with odd ones for
nothing but this table; sets are numbered in order of names. *Forest* is scikit-learn's
IsolationForest: frozen, fitted to the first 1,008 records; refit, to the last 1,024 whenever half
of them are new."""

DIFFERENCES = """\
## Differences

The scorer's p-value minus each other detector, on the streams with odd numbers, and on the
sets with any number: mean of the paired differences ± standard error."""

ALL_SETS = "sets, all"

Methods = dict[str, Callable[[Array], dict[str, Array]]]

METHODS: Methods = {
    "forests": lambda x: {
        "forest, frozen": prequential(FrozenForest(), x),
        "forest, refit": prequential(Forest(window=1_024), x),
    },
    "gaussians": lambda x: {
        "Gaussian, diagonal": prequential(RunningGaussian(diagonal=True), x),
        "Gaussian, full": prequential(RunningGaussian(diagonal=False), x),
    },
    "scorer": lambda x: dict(zip(("scorer", SCORER), stream_scorer(x), strict=True)),
}


def run(out: Path, quick: bool, folder: Path = FOLDER) -> None:
    """Whether what is rare stays unusual: groups, lone anomalies, real sets, against forests."""
    sources = {
        "groups": rarities.groups,
        "scattered": rarities.scattered,
        "sets": lambda: rarities.sets(folder / "labelled"),
    }
    most = 4 if quick else None
    figures = [
        figure
        for part, source in sources.items()
        for figure in measure(part, islice(source(), most))
    ]
    text = ["Ranking of what is rare", prose(TEXT), markdown([*table(figures)])]
    write_report(
        out, "ranking", [*text, DIFFERENCES], [*differences(figures)],
        {"streams": [asdict(figure) for figure in figures]},
    )  # fmt: skip


def measure(part: str, streams: Iterable[Stream], methods: Methods = METHODS) -> Iterator[Figure]:
    """Rank each stream by every method."""
    for number, stream in enumerate(streams):
        label, family = stream.label[WARM_UP:], f"{part}, {('even', 'odd')[number % 2]}"
        for method in methods.values():
            for name, score in method(stream.x).items():
                curve = alarm_curve(label, np.nan_to_num(score[WARM_UP:]))
                area, precision = curve.area_under_roc, curve.average_precision
                yield Figure(part, stream.name, family, name, area, precision)
        click.echo(f"{part}: {stream.name}", err=True)


def table(figures: list[Figure]) -> Iterator[dict[str, object]]:
    """Lay out methods against parts, each by even and odd numbers."""
    families = dict.fromkeys(figure.family for figure in figures)
    for method in dict.fromkeys(figure.method for figure in figures):
        means = {f: pairs(figures, f, method).mean(axis=0) for f in families}
        yield {"": method} | {f: f"{mean[0]:.3f} / {mean[1]:.3f}" for f, mean in means.items()}


def differences(figures: list[Figure]) -> Iterator[dict[str, object]]:
    """Hold the p-value against each other method, stream by stream."""
    families = [f for f in dict.fromkeys(figure.family for figure in figures) if "odd" in f]
    families += [ALL_SETS] if "sets, odd" in families else []
    for method in dict.fromkeys(figure.method for figure in figures):
        if method != SCORER:
            yield {"": method} | {f: difference(figures, f, method) for f in families}


def difference(figures: list[Figure], family: str, method: str) -> str:
    apart = pairs(figures, family, SCORER) - pairs(figures, family, method)
    mean, error = apart.mean(axis=0), apart.std(axis=0, ddof=1) / np.sqrt(len(apart))
    return " / ".join(f"{m:+.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True))


def pairs(figures: list[Figure], family: str, method: str) -> Array:
    """Area and precision of each stream (n, 2)."""
    own = [f for f in figures if family in (f.family, f"{f.part}, all") and f.method == method]
    return np.array([(figure.area, figure.precision) for figure in own])
