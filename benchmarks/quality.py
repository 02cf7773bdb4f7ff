"""How well anomalies rank: generated and real labelled streams, against simpler detectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter

import click
import numpy as np

from faust_oslrau.app.offline.quality import alarm_curve
from faust_oslrau.learner import OSLRAU, StreamScorer

from . import contamination, labelled
from .contamination import Stream
from .datasets import Array
from .demo_faults import found_by_kind
from .detectors import Density, Forest, RunningGaussian, half_space_trees, prequential
from .learners import WITH_MIXTURES
from .plots import plot_ranking
from .report import markdown, prose, write_report

WARM_UP = 240
"""Records that are not counted: the first four learning batches."""

SHUFFLES = 2
"""Random orders of each real set."""

TEXT = """\
Every detector scores a record before it learns it; the first 240 records do not count. Figures are
the area under the ROC curve and the average precision, means over the streams of a family.
*Development* streams served to choose the defaults, *held-out* ones for nothing but this table:
generated, they are of other families with other kinds of anomalies; real, of other origins.
Generated streams have 3, 10, 30 and 100 fields with 10, 1, 0.1 and 1 % of anomalies. Real sets come
from Python packages, in random order, twice each, with at most 10,000 rows and 10 % of anomalies.
*Gaussians* are running means and covariances. *Forest* is scikit-learn's IsolationForest, fitted
to the last 2,048 records whenever half of them are new. *Half-space trees* are River's, on fields
scaled to [0, 1] as they go. The scorer is the product: its log-likelihood, its p-value, and its
log-likelihood without the guard, which then learns every record. *Mixtures* is the scorer
with mixtures beside the network."""

Scores = dict[str, Array]
Method = Callable[[Array], Scores]


def gaussians(x: Array) -> Scores:
    return {
        "Gaussian, diagonal": prequential(RunningGaussian(diagonal=True), x),
        "Gaussian, full": prequential(RunningGaussian(diagonal=False), x),
    }


def scorer(x: Array) -> Scores:
    block = StreamScorer(OSLRAU()).process(x)
    return {"scorer": -block.log_likelihood, "scorer, p-value": -block.p_value}


METHODS: tuple[Method, ...] = (
    gaussians,
    lambda x: {"forest": prequential(Forest(), x)},
    lambda x: {"half-space trees": half_space_trees(x)},
    scorer,
    lambda x: {"scorer, no guard": prequential(Density(OSLRAU()), x)},
    lambda x: {"mixtures, p-value": -StreamScorer(WITH_MIXTURES()).process(x).p_value},
)


@dataclass(frozen=True)
class Figure:
    """What one detector reached on one stream."""

    part: str
    stream: str
    family: str
    method: str
    area: float
    precision: float


def run(out: Path, quick: bool) -> None:
    """How well anomalies rank: generated, real and the demo's, against simpler detectors."""
    faults = found_by_kind(20_000 if quick else 400_000)
    n, seeds = (2_000, 1) if quick else (5_000, 1)
    sources: dict[str, Iterator[Stream]] = {
        "generated, development": contamination.development(n, seeds),
        "generated, held-out": contamination.held_out(n, seeds),
        "real, development": labelled.real_streams(labelled.DEVELOPMENT, SHUFFLES),
        "real, held-out": labelled.real_streams(labelled.HELD_OUT, SHUFFLES),
    }
    most = 2 if quick else None
    figures = [
        figure
        for part, streams in sources.items()
        for figure in measure(part, islice(streams, most))
    ]
    plot_ranking(out / "quality.png", {part: ranking(own) for part, own in parted(figures)})
    write_report(
        out, "quality", ["Anomaly detection", prose(TEXT), *tables(figures), DEMO],
        faults, {"streams": [asdict(figure) for figure in figures], "demo": faults},
        ["quality.png"],
    )  # fmt: skip


DEMO = """\
## The demo's machines

400,000 messages in four partitions, one reading in 2,000 anomalous: how many of each kind are
flagged at the default alarm rate of 0.001 and at 0.01 (*recall*: of all), and in the last row how
many of the flagged were injected."""


def measure(part: str, streams: Iterable[Stream]) -> Iterator[Figure]:
    """Rank each stream by every method."""
    for stream in streams:
        began = perf_counter()
        for method in METHODS:
            for name, score in method(stream.x).items():
                yield Figure(
                    part, stream.name, stream.name.split(",")[0], name, *rank(stream, score)
                )
        click.echo(f"{part}: {stream.name}, {perf_counter() - began:.1f} s", err=True)


def rank(stream: Stream, score: Array) -> tuple[float, float]:
    """Area under the ROC curve and average precision after the warm-up."""
    curve = alarm_curve(stream.label[WARM_UP:], score[WARM_UP:])
    return round(curve.area_under_roc, 4), round(curve.average_precision, 4)


def tables(figures: list[Figure]) -> Iterator[str]:
    """Lay out each part as a table of families and methods."""
    for part, own in parted(figures):
        yield f"## {part.capitalize()}"
        yield markdown([*family_rows(own)])


def parted(figures: list[Figure]) -> Iterator[tuple[str, list[Figure]]]:
    for part in dict.fromkeys(figure.part for figure in figures):
        yield part, [figure for figure in figures if figure.part == part]


def family_rows(figures: list[Figure]) -> Iterator[Mapping[str, object]]:
    for family in dict.fromkeys(figure.family for figure in figures):
        means = ranking([figure for figure in figures if figure.family == family])
        yield {"": family} | {method: cell(mean) for method, mean in means.items()}
    yield {"": "**mean**"} | {method: cell(mean) for method, mean in ranking(figures).items()}


def ranking(figures: list[Figure]) -> dict[str, tuple[float, float]]:
    """Mean area and precision of each method; every family has as many streams."""
    return {
        method: (
            float(np.mean([figure.area for figure in figures if figure.method == method])),
            float(np.mean([figure.precision for figure in figures if figure.method == method])),
        )
        for method in dict.fromkeys(figure.method for figure in figures)
    }


def cell(mean: tuple[float, float]) -> str:
    return f"{mean[0]:.3f} / {mean[1]:.2f}"
