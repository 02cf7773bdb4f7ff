"""oSLRAU with mixtures against oSLRAU alone and simpler densities: test folds, and streams."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import numpy as np
from rich.console import Console
from rich.progress import track

from faust_oslrau.learner import OSLRAU, compile_kernels

from . import prequential
from .crossval import HONEST_FLOOR, Density, Estimate, Fit, in_data_units, oslrau
from .datasets import Array, Dataset, Setting
from .detectors import boundaries
from .learners import WITH_MIXTURES
from .mixtures import Mixture, single_gaussian
from .plan import RESULTS, Plan
from .report import NOISE, markdown, prose, thousands, write_report

OFFLINE = "scikit-learn"
"""The method whose figures come from the results of ``baselines``: it takes long."""

FOLDS = """\
Test folds. *Paper* is oSLRAU with the settings of Table 1. *Default* is `OSLRAU()` and *mixtures*
is `OSLRAU(mixtures=True)`, both in the mini-batches of a stream: 16, 32, 64, 128 and then 256
records. *Gaussian* is a single one. The rows of *scikit-learn*, an offline mixture of ten
Gaussians, come from [baselines](baselines.md). Log-likelihoods are exact, in nats per row, mean ±
standard error over the folds. *Own floor* raises each leaf variance to 1e-4 in the units that the
model made of its first records, *data's floor* to 1e-4 in the file's units; without units of its
own both are the same. *State* is the model as bytes."""


def as_stream(make: Callable[[], OSLRAU]) -> Fit:
    """Configure a learner that takes all training folds as one stream."""

    def fit(folds: Iterable[Array], setting: Setting) -> OSLRAU:
        model, rows = make(), np.concatenate(list(folds))
        for start, stop in boundaries(len(rows)):
            model.partial_fit(rows[start:stop])
        return model

    return fit


METHODS: dict[str, Fit] = {
    "paper": oslrau(),
    "default": as_stream(OSLRAU),
    "mixtures": as_stream(WITH_MIXTURES),
    "Gaussian": single_gaussian,
}


@dataclass(frozen=True)
class Fold:
    """One method on one test fold; log-likelihoods are means in nats.

    ``state`` is in bytes; like ``learn_seconds``, None where it was not measured.
    """

    dataset: str
    method: str
    native: float
    own: float
    data: float
    nodes: int
    state: int | None
    learn_seconds: float


def run(plan: Plan) -> None:
    """Density beside that of Gaussians and offline mixtures: test folds, and streams."""
    compile_kernels()
    folds = [fold for dataset in plan.datasets() for fold in test_folds(plan, dataset)]
    streams = list(prequential.measure(plan))
    paragraphs = [
        "Density",
        prose(prequential.TEXT),
        NOISE,
        markdown(prequential.rows(streams)),
        prequential.summary(streams),
        prose(FOLDS),
    ]
    figures = {"folds": [asdict(f) for f in folds], "streams": [asdict(s) for s in streams]}
    write_report(plan.out, "density", paragraphs, fold_rows(folds), figures)


def test_folds(plan: Plan, dataset: Dataset) -> Iterator[Fold]:
    console = Console(stderr=True)
    for fold in track(plan.folds_of(dataset), dataset.name, console=console):
        train, test = list(dataset.train(fold)), dataset.test(fold)
        for method, fit in METHODS.items():
            began = process_time()
            model = fit(train, dataset.setting)
            seconds = process_time() - began
            own, data = floored(model, test)
            native = float(model.score_samples(test).mean())
            state = None if isinstance(model, Mixture) else len(model.to_bytes())
            yield Fold(dataset.name, method, native, own, data, model.n_nodes_, state, seconds)
    yield from quoted(RESULTS / "baselines.csv", dataset.name)


def quoted(path: Path, dataset: str) -> Iterator[Fold]:
    """Read what the offline mixture reached on a data set from the results of ``baselines``."""
    with path.open() as file:
        file.readline()  # the command
        for row in csv.DictReader(file):
            if (row["dataset"], row["method"]) == (dataset, OFFLINE):
                native, honest, seconds = (
                    float(row[name]) for name in ("native", "honest", "learn_seconds")
                )
                nodes = int(row["nodes"])
                yield Fold(dataset, OFFLINE, native, honest, honest, nodes, None, seconds)


def floored(model: Density, test: Array) -> tuple[float, float]:
    """Mean log-density with a floor in the model's units, and in those of the data."""
    own, data = (
        float(each.score_samples(test, variance_floor=HONEST_FLOOR).mean())
        for each in (model, in_data_units(model))
    )
    return own, data


def fold_rows(folds: list[Fold]) -> list[dict[str, object]]:
    """Summarise the folds of each data set and method, in the order they were first run."""
    rows = []
    for dataset, method in dict.fromkeys((fold.dataset, fold.method) for fold in folds):
        some = [fold for fold in folds if (fold.dataset, fold.method) == (dataset, method)]
        states = [fold.state for fold in some if fold.state is not None]
        rows.append(
            {
                "data set": dataset,
                "method": method,
                "folds": len(some),
                "native": Estimate.of([fold.native for fold in some]),
                "own floor": Estimate.of([fold.own for fold in some]),
                "data's floor": Estimate.of([fold.data for fold in some]),
                "nodes": thousands(float(np.mean([fold.nodes for fold in some]))),
                "state, kB": thousands(float(np.mean(states)) / 1e3) if states else "",
                "learning, s": f"{np.mean([fold.learn_seconds for fold in some]):.1f}",
            }
        )
    return rows
