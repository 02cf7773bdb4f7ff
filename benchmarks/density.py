"""The stacked density against oSLRAU and simpler densities: test folds, and streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import numpy as np
from rich.console import Console
from rich.progress import track

from faust_oslrau.learner import OSLRAU, StackedSPN, StreamScorer, compile_kernels
from faust_oslrau.learner.quality import alarm_curve, mean_of_best

from .crossval import DEFAULT_BATCH, HONEST_FLOOR, Density, Estimate, Fit, oslrau, oslrau_default
from .datasets import Array, Dataset, Setting
from .mixtures import offline_mixture, single_gaussian
from .plan import Plan
from .report import NOISE, markdown, thousands, write_report

FIRST = 240
"""Records of the warm-up of a stream."""

MOST_RECORDS = 20_000
"""Of a stream; longer sets are cut."""

MOST_FIELDS = 128

FOLDS = """\
Test folds. *Paper* is oSLRAU with the settings of Table 1, *default* is `OSLRAU()`, *stacked* is
`StackedSPN()`, both in mini-batches of 256; *no tree* gives oSLRAU's network no nodes of it.
*Gaussian* is a single one, *scikit-learn* an offline mixture of ten. Log-likelihoods are exact, in
nats per row, mean ± standard error over the folds. *Own floor* raises each leaf variance to 1e-4 in
the units that the model made of its first records, *data's floor* to 1e-4 in the file's units;
without units of its own both are the same. The default model has no floor by variable."""

STREAMS = """\
Streams. Each record is scored by `StreamScorer` before it is learned; at most 20,000 records of a
set in random order. *Best 99 %* leaves out the hundredth with the lowest log-density, *first 240*
is the mean over the warm-up without its first 16 records. *Area* is that under the ROC curve of
the p-value after the warm-up, where a set has labels."""


def stacked(tree_nodes: int) -> Fit:
    """Configure the stacked density, which learns in mini-batches that restart at each fold."""

    def fit(folds: Iterable[Array], setting: Setting) -> StackedSPN:
        model = StackedSPN(tree_nodes=tree_nodes)
        for rows in folds:
            model.partial_fit(rows, batch_size=DEFAULT_BATCH)
        return model

    return fit


METHODS: dict[str, Fit] = {
    "paper": oslrau(),
    "default": oslrau_default,
    "stacked": stacked(300),
    "stacked, no tree": stacked(0),
    "Gaussian": single_gaussian,
    "scikit-learn": offline_mixture,
}


@dataclass(frozen=True)
class Fold:
    """One method on one test fold; log-likelihoods are means in nats."""

    dataset: str
    method: str
    native: float
    own: float
    data: float | None
    nodes: int
    learn_seconds: float


@dataclass(frozen=True)
class Stream:
    """One learner on one stream; log-likelihoods are means in nats."""

    name: str
    learner: str
    mean: float
    best: float
    first: float
    area: float | None
    seconds: float


def run(plan: Plan) -> None:
    """The stacked density beside oSLRAU, Gaussians and mixtures: test folds, and streams."""
    for kind in (OSLRAU, StackedSPN):
        compile_kernels(kind)
    folds = [fold for dataset in plan.datasets() for fold in test_folds(plan, dataset)]
    streams = [result for name, x, y in load_streams(plan) for result in score(name, x, y)]
    table = markdown([stream_row(stream) for stream in streams])
    paragraphs = ["Density", STREAMS.replace("\n", " "), table, FOLDS.replace("\n", " "), NOISE]
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
            yield Fold(dataset.name, method, native, own, data, model.n_nodes_, seconds)


def floored(model: Density, test: Array) -> tuple[float, float | None]:
    """Mean log-density with a floor in the model's units, and in those of the data."""
    own = float(model.score_samples(test, variance_floor=HONEST_FLOOR).mean())
    if isinstance(model, StackedSPN):
        floor = HONEST_FLOOR / model.scale_**2
        return own, float(model.score_samples(test, variance_floor=floor).mean())
    has_units = isinstance(model, OSLRAU) and model.standardize
    return own, None if has_units else own


def load_streams(plan: Plan) -> Iterator[tuple[str, Array, Array | None]]:
    """Yield name, records in random order and labels, of the sets with labels and of the plan's."""
    rng = np.random.default_rng(0)
    for dataset in plan.datasets():
        yield dataset.name, dataset.x[rng.permutation(len(dataset.x))[:MOST_RECORDS]], None
    for path in labelled_sets(plan.folder):
        with np.load(path) as arrays:
            x, y = np.asarray(arrays["x"], np.float64), np.asarray(arrays["y"])
        if x.shape[1] <= MOST_FIELDS:
            yield path.stem, x[:MOST_RECORDS], y[:MOST_RECORDS]


def labelled_sets(folder: Path) -> list[Path]:
    return sorted((folder / "labelled").glob("*.npz"))


def score(name: str, x: Array, y: Array | None) -> Iterator[Stream]:
    for model in (OSLRAU(), StackedSPN()):
        began = process_time()
        block = StreamScorer(model).process(x)
        seconds = process_time() - began
        known = block.log_likelihood[16:]
        area = None
        if y is not None and 0 < y[FIRST:].mean() < 1:
            area = alarm_curve(y[FIRST:], -block.p_value[FIRST:]).area_under_roc
        yield Stream(
            name, type(model).__name__,
            float(known.mean()),
            mean_of_best(known),
            float(known[: FIRST - 16].mean()),
            area, seconds,
        )  # fmt: skip


def fold_rows(folds: list[Fold]) -> list[dict[str, object]]:
    """Summarise the folds of each data set and method, in the order they were first run."""
    rows = []
    for dataset, method in dict.fromkeys((fold.dataset, fold.method) for fold in folds):
        some = [fold for fold in folds if (fold.dataset, fold.method) == (dataset, method)]
        rows.append(
            {
                "data set": dataset,
                "method": method,
                "folds": len(some),
                "native": Estimate.of([fold.native for fold in some]),
                "own floor": Estimate.of([fold.own for fold in some]),
                "data's floor": of_known([fold.data for fold in some]),
                "nodes": thousands(float(np.mean([fold.nodes for fold in some]))),
                "learning, s": f"{np.mean([fold.learn_seconds for fold in some]):.1f}",
            }
        )
    return rows


def of_known(values: list[float | None]) -> Estimate | str:
    known = [value for value in values if value is not None]
    return Estimate.of(known) if known else ""


def stream_row(stream: Stream) -> dict[str, object]:
    return {
        "stream": stream.name,
        "learner": stream.learner,
        "mean": f"{stream.mean:.2f}",
        "best 99 %": f"{stream.best:.2f}",
        "first 240": f"{stream.first:.2f}",
        "area": "" if stream.area is None else f"{stream.area:.3f}",
        "seconds": f"{stream.seconds:.1f}",
    }
