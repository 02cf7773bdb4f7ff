"""Densities of the baselines on streams: each record is scored before it is learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time

import numpy as np
from rich.console import Console
from rich.progress import track

from faust_oslrau.app.offline.quality import mean_of_best
from faust_oslrau.learner import OSLRAU

from .crossval import HONEST_FLOOR, Density, InDataUnits, Run, in_data_units, oslrau_default
from .datasets import Array, Dataset, Setting
from .density import as_stream
from .detectors import BATCH, prequential
from .learners import WITH_MIXTURES
from .opponents import densities
from .opponents.online import FIRST_ROWS, OnePass, Online
from .opponents.sizes import Size
from .plan import Plan
from .prequential import KNOWN, MOST_RECORDS, short
from .report import thousands

TEXT = f"""\
## Records scored before they are learned

Each set as a stream of its first {MOST_RECORDS:,} records in random order. A record is scored
before its block is learned; blocks end after 16, 48, 112 and 240 records, then every {BATCH}. The
first {KNOWN.start} are not counted. Means in nats with the honest floor; *best 99 %* leaves out the
hundredth with the lowest log-density. *Seconds* are for scoring and learning."""


@dataclass(frozen=True)
class Stream:
    """One method on one stream; log-likelihoods are means in nats."""

    dataset: str
    method: str
    records: int
    mean: float
    best: float
    seconds: float


class Own:
    """One of the project's learners among the opponents."""

    def __init__(self, model: OSLRAU) -> None:
        self._model = model

    def learn(self, rows: Array) -> None:
        self._model.partial_fit(rows)

    def density(self) -> Density:
        return InDataUnits(self._model)


class BeforeLearning:
    """A detector that scores rows by the density learned so far, with the honest floor."""

    def __init__(self, method: OnePass, setting: Setting) -> None:
        self._method, self._setting = method, setting
        self._model: Online | None = None

    def learn(self, rows: Array) -> None:
        self._model = self._model or self._method.start(rows[:FIRST_ROWS])
        self._method.learn(self._model, rows, self._setting)

    def score(self, rows: Array) -> Array:
        if self._model is None:
            raise RuntimeError("expected rows to be learned before others are scored")
        return -self._model.density().score_samples(rows, variance_floor=HONEST_FLOOR)


def with_mixtures(folds: Iterable[Array], setting: Setting) -> Density:
    return in_data_units(as_stream(WITH_MIXTURES)(folds, setting))


def default(folds: Iterable[Array], setting: Setting) -> Density:
    return in_data_units(oslrau_default(folds, setting))


def measure(plan: Plan, runs: list[Run]) -> Iterator[Stream]:
    """Score each set as a stream by every method that learns in one pass."""
    for dataset in plan.datasets():
        first = next(run for run in runs if run.dataset == dataset.name)
        order = np.random.default_rng(0).permutation(len(dataset.x))[:MOST_RECORDS]
        methods = online(dataset, Size(first.nodes, first.parameters, first.fold))
        for name, method in track(methods.items(), dataset.name, console=Console(stderr=True)):
            yield stream(dataset, name, method, dataset.x[order])


def online(dataset: Dataset, size: Size) -> dict[str, OnePass]:
    """Configure the methods that learn in one pass."""
    paper = {"min_count": dataset.setting.min_count, "max_leaf_vars": dataset.setting.max_leaf_vars}
    own: dict[str, Callable[[], OSLRAU]] = {
        "oSLRAU": lambda: OSLRAU.paper(**paper),
        "oSLRAU, default": OSLRAU,
        "oSLRAU, mixtures": WITH_MIXTURES,
    }
    sizes = {"oSLRAU": None, "oSLRAU, default": BATCH, "oSLRAU, mixtures": BATCH}
    learners = {name: OnePass(partial(start, make), sizes[name]) for name, make in own.items()}
    others = {name: make(size) for name, make in densities().items()}
    return learners | {name: fit for name, fit in others.items() if isinstance(fit, OnePass)}


def start(make: Callable[[], OSLRAU], first: Array) -> Own:
    return Own(make())


def stream(dataset: Dataset, name: str, method: OnePass, x: Array) -> Stream:
    began = process_time()
    score = -prequential(BeforeLearning(method, dataset.setting), x)[KNOWN]
    seconds = process_time() - began
    return Stream(
        dataset.name, name, len(x), float(score.mean()), float(mean_of_best(score)), seconds
    )


def row(stream: Stream) -> dict[str, object]:
    return {
        "data set": stream.dataset,
        "method": stream.method,
        "records": thousands(stream.records),
        "mean": short(stream.mean, ".2f"),
        "best 99 %": short(stream.best, ".2f"),
        "seconds": f"{stream.seconds:.1f}",
    }
