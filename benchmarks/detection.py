"""Detectors of other libraries beside the scorer, on the streams of ``ranking``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from . import opponents, ranking, rarities
from .contamination import Stream
from .datasets import Array
from .detectors import FrozenForest, prequential
from .plan import FOLDER
from .quality import Figure
from .report import NOISE, prose, write_report

MOST_RECORDS = 600
"""Of a stream: the slowest detector takes more than 10 ms a record."""

GENERATED = 4
"""Streams of groups, and of lone anomalies."""

KNOWN: ranking.Methods = ranking.METHODS | {
    "forests": lambda x: {"forest": prequential(FrozenForest(), x)}
}
"""Streams end before the window of either forest of ``ranking`` is full: both are the same here."""

TEXT = f"""\
The streams of [ranking](ranking.md), cut after {MOST_RECORDS} records: the first {GENERATED} with
groups of anomalies, the first {GENERATED} with lone ones, and all real sets. Every detector scores
a record before it learns it; the first {ranking.WARM_UP} records do not count. Figures are the area
under the ROC curve and the average precision, means over the streams. *Forest* is scikit-learn's
IsolationForest, fitted to all records so far whenever half of them are new. *Half-space trees* are
River's. *Exact-STORM*, *RS-Hash* and one *LODA* are PySAD's, the best three of its detectors that
take less than 10 ms a record, by the first 600 records of eleven streams with even numbers.
*Online-iForest* is CapyMOA's. All have the defaults of their libraries."""


def run(out: Path, quick: bool, folder: Path = FOLDER) -> None:
    """How other libraries' detectors rank anomalies, beside the scorer, a forest and Gaussians."""
    known = KNOWN | {name: named(name, make) for name, make in online_detectors().items()}
    sources = {
        "groups": islice(rarities.groups(), GENERATED),
        "scattered": islice(rarities.scattered(), GENERATED),
        "sets": rarities.sets(folder / "labelled"),
    }
    most = 1 if quick else None
    measured = (
        ranking.measure(part, map(cut, islice(streams, most)), known)
        for part, streams in sources.items()
    )
    write(out, list(chain.from_iterable(measured)))


def write(out: Path, figures: list[Figure]) -> None:
    write_report(
        out, "detection", ["Detectors of other libraries", prose(TEXT), NOISE],
        [*table(figures)], {"streams": [asdict(figure) for figure in figures]},
    )  # fmt: skip


def online_detectors() -> dict[str, Callable[[Array], Array]]:
    """Return the opponents' detectors, or name the package that is missing."""
    if not [*opponents.installed({"detectors": "capymoa"})]:
        return {}
    from .opponents.detectors import METHODS

    return METHODS


def named(name: str, score: Callable[[Array], Array]) -> Callable[[Array], dict[str, Array]]:
    return lambda x: {name: score(x)}


def cut(stream: Stream) -> Stream:
    return replace(stream, x=stream.x[:MOST_RECORDS], label=stream.label[:MOST_RECORDS])


def table(figures: list[Figure]) -> Iterator[Mapping[str, object]]:
    """Lay out methods against parts."""
    parts = dict.fromkeys(figure.part for figure in figures)
    for method in dict.fromkeys(figure.method for figure in figures):
        own = [figure for figure in figures if figure.method == method]
        yield {"": method} | {part: cell(own, part) for part in parts}


def cell(figures: list[Figure], part: str) -> str:
    own = [(f.area, f.precision) for f in figures if f.part == part]
    area, precision = np.nanmean(own, axis=0)
    return f"{area:.3f} / {precision:.3f}"
