"""Densities on streams: each record is scored before it is learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

from faust_oslrau.app.offline.quality import alarm_curve, mean_of_best
from faust_oslrau.learner import OSLRAU, StreamScorer

from .datasets import Array
from .detectors import RunningGaussian, prequential
from .families import DEVELOPMENT, HELD_OUT
from .learners import WITH_MIXTURES
from .plan import Plan

KNOWN = slice(16, None)
"""The first 16 records have no model."""

FIRST = 240
"""Records of the warm-up of a stream."""

MOST_RECORDS = 5_000
"""Of a stream; longer sets are cut."""

MOST_FIELDS = 128
GENERATED_FIELDS = 8

NOISE = 0.01
"""Deviations of the noise that is added to a stream, so that no value comes twice."""

LEARNERS = {"default": OSLRAU, "mixtures": WITH_MIXTURES}

TEXT = """\
Streams. Each record is scored by `StreamScorer` before it is learned; at most 5,000 records of a
set, those of the paper in random order. *Default* is `OSLRAU()`, *mixtures* is
`OSLRAU(mixtures=True)`, *Gaussian* is the mean and covariance of all records so far. Cells are
Gaussian / default / mixtures, or the last two. *Mean* leaves out the first 16 records, which have
no model; *best 99 %* leaves out the hundredth with the lowest log-density as well; *first 240* is
the mean over the warm-up; *lowest* is that of a single record. *Noise* is the mean with Gaussian
noise of 0.01 deviations on each value. *Area* is that under the ROC curve of the p-value after the
warm-up, where a set has labels. *SKAB* are the runs of a test bed, in their order; generated
streams have 8 fields."""


class Source(NamedTuple):
    """A stream: records ``x`` (n, d), labels if it has them, and the group that it is shown in."""

    group: str
    x: Array
    y: Array | None = None


@dataclass(frozen=True)
class Stream:
    """One learner on one stream; log-likelihoods are in nats."""

    group: str
    fields: int
    records: int
    learner: str
    mean: float
    best: float
    first: float
    lowest: float
    noisy: float
    area: float | None
    seconds: float


def measure(plan: Plan) -> Iterator[Stream]:
    """Run the learners on the plan's sets, the labelled ones, sequences and generated streams."""
    console = Console(stderr=True)
    for source in track(list(sources(plan)), "streams", console=console):
        x, noise = source.x, np.random.default_rng(1).normal(size=source.x.shape)
        noisy = x + NOISE * x.std(axis=0) * noise
        for learner in ("Gaussian", *LEARNERS):
            began = process_time()
            score, p_value = scored(learner, x)
            seconds = process_time() - began
            yield Stream(
                source.group, x.shape[1], len(x), learner,
                float(score.mean()),
                mean_of_best(score),
                float(score[: FIRST - KNOWN.start].mean()),
                float(score.min()),
                float(scored(learner, noisy)[0].mean()),
                area(source.y, p_value), seconds,
            )  # fmt: skip


def scored(learner: str, x: Array) -> tuple[Array, Array | None]:
    """Log-densities of all records but the first 16, and p-values of all but the warm-up."""
    if learner == "Gaussian":
        return -prequential(GaussianDensity(), x)[KNOWN], None
    block = StreamScorer(LEARNERS[learner]()).process(x)
    return block.log_likelihood[KNOWN], block.p_value[FIRST:]


class GaussianDensity(RunningGaussian):
    """The running mean and covariance, scored in the records' own units."""

    def __init__(self) -> None:
        super().__init__(diagonal=False)

    def score(self, rows: Array) -> Array:
        return super().score(rows) + np.log(self.scale).sum()


def area(y: Array | None, p_value: Array | None) -> float | None:
    if y is None or p_value is None or len(np.unique(y[FIRST:])) < 2:
        return None
    return alarm_curve(y[FIRST:], -p_value).area_under_roc


def sources(plan: Plan) -> Iterator[Source]:
    rng = np.random.default_rng(0)
    for dataset in plan.datasets():
        yield Source(dataset.name, dataset.x[rng.permutation(len(dataset.x))[:MOST_RECORDS]])
    for folder, is_group in (("labelled", False), ("sequences", True)):
        for path in sorted((plan.folder / folder).glob("*.npz")):
            with np.load(path) as arrays:
                x, y = np.asarray(arrays["x"], np.float64), np.asarray(arrays["y"])
            if x.shape[1] <= MOST_FIELDS:
                name = path.stem.split("-")[0].upper() if is_group else path.stem
                yield Source(name, x[:MOST_RECORDS], y[:MOST_RECORDS])
    for group in (*DEVELOPMENT, HELD_OUT):
        for name, family in group.items():
            seed = np.random.default_rng(len(name))
            yield Source(f"generated: {name}", family(seed, MOST_RECORDS, GENERATED_FIELDS))


def rows(streams: list[Stream]) -> list[dict[str, object]]:
    """Lay out a row for each group of streams, with means over them."""
    return [row([s for s in streams if s.group == group]) for group in groups(streams)]


def groups(streams: list[Stream]) -> list[str]:
    return list(dict.fromkeys(stream.group for stream in streams))


def row(streams: list[Stream]) -> dict[str, object]:
    by_learner = {
        learner: [stream for stream in streams if stream.learner == learner]
        for learner in ("Gaussian", *LEARNERS)
    }
    n, first = len(by_learner["mixtures"]), streams[0]
    every = list(by_learner.values())
    return {
        "stream": first.group if n == 1 else f"{first.group}, {n} runs",
        "records x fields": f"{first.records:,} x {first.fields}",
        "mean": cell([[s.mean for s in some] for some in every]),
        "best 99 %": cell([[s.best for s in some] for some in every]),
        "first 240": cell([[s.first for s in some] for some in every]),
        "lowest": cell([[min(s.lowest for s in some)] for some in every[1:]], 0),
        "noise": cell([[s.noisy for s in some] for some in every]),
        "area": cell([[s.area for s in some if s.area is not None] for some in every[1:]], 3),
    }


def cell(values: list[list[float]], digits: int = 2) -> str:
    """Write the mean of each learner's values."""
    if not values[0]:
        return ""
    return " / ".join(short(float(np.mean(some)), f".{digits}f") for some in values)


def short(value: float, form: str) -> str:
    """Write a number in a format, or in few characters if it is enormous."""
    sign = "+" if form.startswith("+") else ""
    return f"{value:{sign}.0e}" if abs(value) >= 1e5 else f"{value:{form}}"


def summary(streams: list[Stream]) -> str:
    """Say by how much mixtures are above the default, where that is least."""
    measures = {"mean": "mean", "best 99 %": "best", "first 240": "first", "noise": "noisy"}
    gains = [f"{name} {least(streams, attribute)}" for name, attribute in measures.items()]
    text = f"The smallest gains of mixtures over default: {'; '.join(gains)}."
    labelled = [s for s in streams if s.area is not None]
    if not labelled:
        return text
    areas = [
        np.mean([mean_of(labelled, group, learner, "area") for group in groups(labelled)])
        for learner in LEARNERS
    ]
    return f"{text} Mean area over the sets: {areas[0]:.3f} / {areas[1]:.3f}."


def mean_of(streams: list[Stream], group: str, learner: str, attribute: str) -> float:
    own = [s for s in streams if (s.group, s.learner) == (group, learner)]
    return float(np.mean([getattr(stream, attribute) for stream in own]))


def least(streams: list[Stream], attribute: str) -> str:
    """Give the smallest gain of a group and its name."""
    gains = {
        group: mean_of(streams, group, "mixtures", attribute)
        - mean_of(streams, group, "default", attribute)
        for group in groups(streams)
    }
    group = min(gains, key=lambda name: gains[name])
    return f"{gains[group]:+.2f} ({group})"
