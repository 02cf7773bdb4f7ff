"""Learn the other folds, score one: the figures of a method on a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from time import process_time
from typing import Protocol

import numpy as np
from rich.console import Console
from rich.progress import track

from faust_oslrau.learner import OSLRAU, compile_kernels

from .datasets import Array, Dataset, Setting
from .plan import Plan

HONEST_FLOOR = 1e-4
"""Least leaf variance in the figures that count: without it the log-likelihood of data with ties
or exact dependence has no bound."""


DEFAULT_BATCH = 256
"""Mini-batch of a stream."""


class Density(Protocol):
    """What every method yields."""

    @property
    def n_nodes_(self) -> int: ...

    @property
    def n_parameters_(self) -> int: ...

    def score_samples(self, X: Array, *, variance_floor: float | None = None) -> Array: ...


class InDataUnits:
    """A density whose variance floor is in the units of the records, not in its own.

    A floor that it has learned with stays where it is the higher one.
    """

    def __init__(self, model: OSLRAU) -> None:
        self._model = model
        self.n_nodes_, self.n_parameters_ = model.n_nodes_, model.n_parameters_

    def score_samples(self, X: Array, *, variance_floor: float | None = None) -> Array:
        own = None if variance_floor is None else self._in_own_units(variance_floor)
        return self._model.score_samples(X, variance_floor=own)

    def _in_own_units(self, floor: float) -> Array:
        return np.fmax(
            floor / self._model.scale_**2, self._model.variance_floor
        )  # NaN: never observed


def in_data_units(model: Density) -> Density:
    return InDataUnits(model) if isinstance(model, OSLRAU) else model


Fit = Callable[[Iterable[Array], Setting], Density]
"""Learns the training folds, in order."""


@dataclass(frozen=True)
class Run:
    """One method on one test fold; log-likelihoods are means over the fold in nats."""

    dataset: str
    method: str
    fold: int
    native: float
    honest: float
    nodes: int
    parameters: int
    learned: int
    scored: int
    learn_seconds: float
    score_seconds: float


def oslrau(
    corr_threshold: float = 0.1,
    max_leaf_vars: int | None = None,
    structure_until: int | None = None,
) -> Fit:
    """Configure the paper's algorithm; other parameters come from the data set's setting."""

    def fit(folds: Iterable[Array], setting: Setting) -> OSLRAU:
        model = OSLRAU.paper(
            corr_threshold=corr_threshold,
            min_count=setting.min_count,
            max_leaf_vars=setting.max_leaf_vars if max_leaf_vars is None else max_leaf_vars,
            structure_until=structure_until,
        )
        return learn(model, folds, setting)

    return fit


def oslrau_default(folds: Iterable[Array], setting: Setting) -> OSLRAU:
    """Learn with the defaults that a stream gets, in mini-batches that restart at each fold."""
    return learn(OSLRAU(), folds, setting._replace(batch_size=DEFAULT_BATCH))


def learn(model: OSLRAU, folds: Iterable[Array], setting: Setting) -> OSLRAU:
    """Learn in mini-batches that restart at each fold."""
    for rows in folds:
        model.partial_fit(rows, batch_size=setting.batch_size)
    return model


def evaluate(method: str, fit: Fit, dataset: Dataset, fold: int) -> Run:
    """Time learning and scoring apart."""
    train, test = list(dataset.train(fold)), dataset.test(fold)
    start = process_time()
    model = fit(train, dataset.setting)
    learned = process_time()
    native = model.score_samples(test)
    scored = process_time()
    return Run(
        dataset.name, method, fold,
        float(native.mean()),
        float(model.score_samples(test, variance_floor=HONEST_FLOOR).mean()),
        model.n_nodes_, model.n_parameters_,
        sum(map(len, train)), len(test),
        learned - start, scored - learned,
    )  # fmt: skip


def cross_validate(plan: Plan, compare: Callable[[Dataset, int], Iterator[Run]]) -> list[Run]:
    """Run what ``compare`` yields on each data set and fold of the plan, with a progress bar."""
    compile_kernels()
    console = Console(stderr=True)
    return [
        run
        for dataset in plan.datasets()
        for fold in track(plan.folds_of(dataset), dataset.name, console=console)
        for run in compare(dataset, fold)
    ]


@dataclass(frozen=True)
class Estimate:
    """Mean over the folds and its standard error, None for one fold."""

    mean: float
    error: float | None

    @classmethod
    def of(cls, values: list[float]) -> Estimate:
        n = len(values)
        error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None
        return cls(float(np.mean(values)), error)

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if self.error is None else f" ± {self.error:.2f}")


@dataclass(frozen=True)
class Summary:
    """One method on one data set."""

    dataset: str
    method: str
    folds: int
    native: Estimate
    honest: Estimate
    nodes: float
    parameters: float
    learn_seconds: float
    learn_rate: float
    score_rate: float


def summarise(runs: list[Run]) -> list[Summary]:
    """Summarise the folds of each data set and method, in the order they were first run."""
    order = {key: None for key in map(_key, runs)}
    place = {key: k for k, key in enumerate(order)}
    grouped = groupby(sorted(runs, key=lambda run: place[_key(run)]), key=_key)
    return [_summary(*key, list(group)) for key, group in grouped]


def _key(run: Run) -> tuple[str, str]:
    return run.dataset, run.method


def _summary(dataset: str, method: str, runs: list[Run]) -> Summary:
    learn_seconds = sum(run.learn_seconds for run in runs)
    return Summary(
        dataset, method, len(runs),
        Estimate.of([run.native for run in runs]),
        Estimate.of([run.honest for run in runs]),
        float(np.mean([run.nodes for run in runs])),
        float(np.mean([run.parameters for run in runs])),
        learn_seconds / len(runs),
        sum(run.learned for run in runs) / learn_seconds,
        sum(run.scored for run in runs) / sum(run.score_seconds for run in runs),
    )  # fmt: skip
