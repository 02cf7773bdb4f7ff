"""What each mechanism of the stacked density brings: the same streams with and without it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from faust_oslrau.learner import StackedSPN, StreamScorer, compile_kernels
from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture
from faust_oslrau.learner.density.mixtures import log_sums
from faust_oslrau.learner.stacked.contest import Alarm, Contest
from faust_oslrau.learner.stacked.network import MEMORY, StackedNetwork, fit_weights
from faust_oslrau.learner.stacked.training import Rule, Training, sizes
from faust_oslrau.learner.stream.shares import Shares

from .change import changed, load, ordered
from .datasets import Array
from .detectors import boundaries
from .drift import STREAMS
from .families import DEVELOPMENT, HELD_OUT
from .plan import Plan
from .prequential import FIRST, KNOWN, MOST_FIELDS, MOST_RECORDS, area
from .report import prose, write_report
from .systems import CHOICES, changes

RECORDS = 8_000
CHANGING_RECORDS = 12_000
FIELDS = 8
SEEDS = (71, 72)
"""None of them served a choice."""

CHANGED_SETS = ("abalone", "ca", "labelled/Wilt", "sensorless")
CHANGED_RECORDS = 8_000
FAULT = slice(3_000, 3_600)
"""Records of a fault, after which the stream is as it was."""

AS_IS = "as it is"
PATIENCE = 4_096

TEXT = """\
Mean log-likelihood of streams, each record scored by `StreamScorer` before it is learned, less that
of the model as it is, in nats: the mean over the streams of a group, ± its paired standard error;
*worse* and *better* count streams that lose or gain more than a hundredth of a nat. *First* is the
same for the first 240 records, *area* that under the ROC curve of the p-value after them, in
thousandths. Streams are the *labelled* sets (at most 5,000 records), *generated* ones of 8 fields
(8,000 records, 15 families, seeds that served no choice), those of real *systems*' processes and
the same with a lasting change, and *changing* ones: sudden and gradual changes, regimes, cycles,
sets whose columns are reversed and negated from the middle on, and those where this is so for 600
records only. A part of the root is left out with the other weights fitted to the same records."""


class Source(NamedTuple):
    """A stream: its group, its name, rows (n, d) and labels, if it has them."""

    group: str
    name: str
    x: Array
    y: Array | None = None


@dataclass(frozen=True)
class Figure:
    """A variant on one stream: mean log-likelihood of all records, of the first 240, and area."""

    group: str
    stream: str
    variant: str
    mean: float
    first: float
    area: float | None


Change = Callable[[], AbstractContextManager[object]]


def as_they_are() -> AbstractContextManager[object]:
    return ExitStack()


def shares_of_root() -> AbstractContextManager[object]:
    """Weigh two networks by their shares in the root, until the next boundary."""
    return patch.object(Shares, "take", lambda self, learner, evaluation: (learner, evaluation))


def restart() -> AbstractContextManager[object]:
    """Let a challenger replace the network at once."""

    def replace(self: Contest, challenger: Training, retire_after: int) -> None:
        self.incumbent, self.alarm = challenger, Alarm(challenger.n_variables)

    return patch.object(Contest, "_admit", replace)


def one_shrinkage() -> AbstractContextManager[object]:
    """Draw the mixture's covariances to their common shape by the same strength all the time."""
    return patch.object(GaussianMixture, "choose", lambda self, Z: False)


def all_learn() -> AbstractContextManager[object]:
    """Let parts without weight learn every record."""
    return patch.object(Training, "share_learned", lambda self, before, weight: 1.0)


MODELS: dict[str, tuple[dict[str, Any], Change]] = {
    AS_IS: ({}, as_they_are),
    "no challengers": ({"retire_after": None}, as_they_are),
    "no challengers, memory": ({"retire_after": None, "memory": PATIENCE}, as_they_are),
    "restart": ({}, restart),
    "shares of the root": ({}, shares_of_root),
    "one shrinkage": ({}, one_shrinkage),
    "all parts learn all": ({}, all_learn),
}
"""Parameters of the model, and what is changed while it runs."""


def run(plan: Plan) -> None:
    """What each mechanism of the stacked density brings, with paired standard errors."""
    compile_kernels(StackedSPN)
    found = list(streams(plan))
    figures = [
        figure
        for source in track(found, "streams", console=Console(stderr=True))
        for figure in measure(source)
    ]
    write_report(
        plan.out, "parts", ["Mechanisms of the density", prose(TEXT)], rows(figures),
        [asdict(figure) for figure in figures],
    )  # fmt: skip


def streams(plan: Plan) -> Iterator[Source]:
    """Yield the files that are given, or else all streams."""
    if plan.files:
        yield from (Source("given", path.stem, load(path)) for path in plan.files)
        return
    for path in sorted((plan.folder / "labelled").glob("*.npz")):
        with np.load(path) as arrays:
            x, y = np.asarray(arrays["x"], np.float64), np.asarray(arrays["y"])
        if x.shape[1] <= MOST_FIELDS:
            yield Source("labelled", path.stem, x[:MOST_RECORDS], y[:MOST_RECORDS])
    families = {k: family for group in (*DEVELOPMENT, HELD_OUT) for k, family in group.items()}
    for seed, (name, family) in enumerate(families.items()):
        rng = np.random.default_rng([seed, *SEEDS])
        yield Source("generated", name, family(rng, RECORDS, FIELDS))
    for seed in SEEDS:
        yield from of_systems(seed)
        yield from changing(plan.folder, seed, families)


def of_systems(seed: int) -> Iterator[Source]:
    for name, family in CHOICES.items():
        rng = np.random.default_rng(seed)
        yield Source("systems", name, family(rng, RECORDS))
        yield Source("systems, changed", name, changes(family, rng, RECORDS).x)


def changing(folder: Path, seed: int, families: dict) -> Iterator[Source]:
    for name in ("regimes", "cycles"):
        rng = np.random.default_rng(seed)
        yield Source("changing", name, families[name](rng, CHANGING_RECORDS, FIELDS))
    for name, stream in STREAMS.items():
        if name != "none":
            yield Source("changing", name, stream(np.random.default_rng(seed), CHANGING_RECORDS))
    for name in CHANGED_SETS:
        path = folder / f"{name}.npz"
        if path.is_file():
            x = ordered(load(path), seed)[:CHANGED_RECORDS]
            half = len(x) // 2
            yield Source("changed", path.stem, np.concatenate([x[:half], changed(x[half:])]))
            fault = x.copy()
            fault[FAULT] = changed(x[FAULT])
            yield Source("fault", path.stem, fault)


def measure(source: Source) -> Iterator[Figure]:
    """Score a stream by every variant."""
    for variant, (parameters, patches) in MODELS.items():
        with patches():
            block = StreamScorer(StackedSPN(**parameters)).process(source.x)
        own = area(source.y, block.p_value[FIRST:])
        yield figure(source, variant, block.log_likelihood[KNOWN], own)
    for variant, score in without_parts(source.x).items():
        yield figure(source, variant, score, None)


def figure(source: Source, variant: str, score: Array, own_area: float | None) -> Figure:
    first = score[: FIRST - KNOWN.start]
    mean, start = float(score.mean()), float(first.mean())
    return Figure(source.group, source.name, variant, mean, start, own_area)


ROOT = "root: "


def without_parts(x: Array) -> dict[str, Array]:
    """Log-densities (n - 16,) of a stream with parts of the root left out."""
    training = Training(x.shape[1])
    rule = Rule(sizes(x.shape[1], StackedSPN().max_nodes, None), math.inf, 0)
    result: dict[str, Array] = {}
    weights: dict[str, Array] = {}
    for start, stop in boundaries(len(x)):
        Z, jacobian = training.scaling.apply(x[start:stop])
        evaluated = None
        if training.network is not None:
            evaluated = training.network.evaluate(Z)
            history = np.concatenate([training.history, evaluated.experts])[-MEMORY:]
            for variant, chosen in variants(training.network).items():
                weight = weights.setdefault(variant, np.full(len(chosen), 1.0 / len(chosen)))
                log_density = log_sums(evaluated.experts[:, chosen] + np.log(weight)) - jacobian
                result.setdefault(variant, np.empty(len(x)))[start:stop] = log_density
                weights[variant] = fit_weights(weight, history[:, chosen])
        training.learn(x[start:stop], rule, evaluated)
    return {variant: score[KNOWN] for variant, score in result.items()}


def variants(network: StackedNetwork) -> dict[str, NDArray[np.int64]]:
    """List the root's children that each variant has, by their places."""
    part = np.array([
        "independent", "products",
        *["Gaussians"] * (network.mixture is not None),
        "width 1", "width 3", "width 15", "width 150",
    ])  # fmt: skip
    left_out = {
        "": [],
        "no independent": ["independent"],
        "no products": ["products"],
        "no Gaussians": ["Gaussians"],
        "no background": ["width 1", "width 3", "width 15", "width 150"],
        "no wide background": ["width 3", "width 15", "width 150"],
        "one wide background": ["width 15", "width 150"],
    }
    return {ROOT + name: np.flatnonzero(~np.isin(part, parts)) for name, parts in left_out.items()}


def rows(figures: list[Figure]) -> list[dict[str, object]]:
    """Lay out a row for each variant and group."""
    names = [v for v in dict.fromkeys(f.variant for f in figures) if v not in (AS_IS, ROOT)]
    groups = list(dict.fromkeys(figure.group for figure in figures))
    return [row(name, group, figures) for name in names for group in (*groups, "all")]


def row(variant: str, group: str, figures: list[Figure]) -> dict[str, object]:
    some = [f for f in figures if group in (f.group, "all")]
    base = ROOT if variant.startswith(ROOT) else AS_IS
    pairs = list(zip(
        [f for f in some if f.variant == variant], [f for f in some if f.variant == base],
        strict=True,
    ))  # fmt: skip
    gains = np.array([own.mean - whole.mean for own, whole in pairs])
    first = np.array([own.first - whole.first for own, whole in pairs])
    areas = np.array([
        1e3 * (own.area - whole.area)
        for own, whole in pairs if own.area is not None and whole.area is not None
    ])  # fmt: skip
    return {
        "variant": variant, "group": group, "streams": len(pairs), "mean": estimate(gains),
        "worse": int((gains < -0.01).sum()), "better": int((gains > 0.01).sum()),
        "worst": f"{gains.min():+.2f}", "best": f"{gains.max():+.2f}",
        "first": estimate(first), "area": estimate(areas, 1),
    }  # fmt: skip


def estimate(values: Array, digits: int = 3) -> str:
    if len(values) == 0:
        return ""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():+.{digits}f} ± {error:.{digits}f}"
