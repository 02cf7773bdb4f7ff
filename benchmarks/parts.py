"""What each part of the stacked density brings: without it, and alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from faust_oslrau.learner import StackedSPN, compile_kernels
from faust_oslrau.learner.stacked.background import N_BACKGROUND
from faust_oslrau.learner.stacked.gaussians import log_sums
from faust_oslrau.learner.stacked.network import Evaluated, StackedNetwork
from faust_oslrau.learner.stacked.sizes import sizes
from faust_oslrau.learner.stacked.training import Rule, Training
from faust_oslrau.learner.stacked.weights import MEMORY, fit_weights

from .datasets import Array
from .detectors import boundaries
from .plan import Plan
from .prequential import FIRST, KNOWN, short, sources
from .report import prose, write_report

SETS = ("PageBlocks", "fault", "landsat", "letter", "vowels")
"""Labelled sets, besides the sets of the plan."""

ALL = "all parts"

TREE_NODES = StackedSPN().tree_nodes
TREE_VARIANTS = {"no nodes for the tree": 0, "twice the nodes for the tree": 2 * TREE_NODES}

TEXT = """\
Some streams of [density](density.md). *All parts* is the mean log-likelihood of all records, each
scored before it is learned, and that of the first 240, in nats. The other columns are what is
gained or lost against it where a part is left out of the root, or is alone in it: the other weights
are fitted to the same records, and all else stays. The parts are the *products* over shared leaves,
the product of the *independent* leaves, the mixture of *Gaussians*, the *background*, which is one
Gaussian over the whole stream at several strengths and widths, and the *tree* that oSLRAU grows.
Here the tree stays to the end, even if no record needs it. *Dropped if not needed* is the model as
it is: its nodes go to more products at the end of the warm-up then. *No nodes for the tree* gives
its 300 nodes to the others, *twice the nodes for the tree* takes 300 more from them."""

DROPPED = "dropped if not needed"


class Lasting(Training):
    """A training that keeps the tree to the end."""

    def _needs_tree(self) -> bool:
        return True


@dataclass(frozen=True)
class Part:
    """A variant on one stream; mean log-likelihoods of all records and of the first 240."""

    stream: str
    variant: str
    mean: float
    first: float


def run(plan: Plan) -> None:
    """What each part of the stacked density brings: without it, alone, and its share of nodes."""
    compile_kernels(StackedSPN)
    names = {*SETS, *plan.names, *(path.stem for path in plan.files)}
    some = {source.group: source.x for source in sources(plan) if source.group in names}
    parts = [
        part
        for name, x in track([*some.items()], "parts", console=Console(stderr=True))
        for part in measure(name, x)
    ]
    rows = [row(name, [part for part in parts if part.stream == name]) for name in some]
    figures = [asdict(part) for part in parts]
    write_report(plan.out, "parts", ["Parts of the density", prose(TEXT)], rows, figures)


def measure(name: str, x: Array) -> Iterator[Part]:
    """Score a stream by every variant."""
    for variant, score in scores(x, TREE_NODES).items():
        yield part(name, variant, score)
    yield part(name, DROPPED, score_as_is(x))
    for variant, nodes in TREE_VARIANTS.items():
        yield part(name, variant, scores(x, nodes)[ALL])


def score_as_is(x: Array) -> Array:
    """Log-densities (n - 16,) of a stream by the model itself."""
    model, result = StackedSPN(adapt_after=None), np.empty(len(x))
    for start, stop in boundaries(len(x)):
        if start > 0:
            result[start:stop] = model.score_samples(x[start:stop])
        model.partial_fit(x[start:stop])
    return result[KNOWN]


def part(stream: str, variant: str, score: Array) -> Part:
    return Part(stream, variant, float(score.mean()), float(score[: FIRST - KNOWN.start].mean()))


def scores(x: Array, tree_nodes: int) -> dict[str, Array]:
    """Log-densities (n - 16,) of a stream with all parts, without one, and with one alone."""
    n, d = x.shape
    training = Lasting(d)
    rule = Rule(sizes(d, StackedSPN().max_nodes, tree_nodes, None), math.inf, 0)
    result: dict[str, Array] = {}
    weights: dict[str, Array] = {}
    for start, stop in boundaries(n):
        Z, jacobian = training.scaling.apply(x[start:stop])
        evaluated = None
        if training.network is not None:
            evaluated = training.network.evaluate(Z)
            for variant, chosen in variants(training.network).items():
                weight = weights.setdefault(variant, np.full(len(chosen), 1.0 / len(chosen)))
                log_density = log_sums(evaluated.experts[:, chosen] + np.log(weight)) - jacobian
                result.setdefault(variant, np.empty(n))[start:stop] = log_density
                weights[variant] = fit_weights(
                    weight, evaluated_history(training, evaluated)[:, chosen]
                )
        training.learn(x[start:stop], rule, evaluated)
    return {variant: score[KNOWN] for variant, score in result.items()}


def evaluated_history(training: Training, evaluated: Evaluated) -> Array:
    """Log-densities of the latest records under each child of the root, the batch included."""
    return np.concatenate([training.history, evaluated.experts])[-MEMORY:]


def variants(network: StackedNetwork) -> dict[str, NDArray[np.int64]]:
    """List the root's children that each variant has, by their places."""
    part = np.array([
        "independent", "products",
        *["Gaussians"] * (network.mixture is not None),
        *["background"] * N_BACKGROUND,
        *["tree"] * (network.tree is not None),
    ])  # fmt: skip
    names = list(dict.fromkeys(part.tolist()))
    return (
        {ALL: np.arange(len(part))}
        | {f"without {name}": np.flatnonzero(part != name) for name in names}
        | {f"{name} alone": np.flatnonzero(part == name) for name in names}
    )


def row(stream: str, parts: list[Part]) -> dict[str, object]:
    """Lay out a stream's variants side by side, the others against all parts."""
    whole = next(part for part in parts if part.variant == ALL)
    others = {
        part.variant: " / ".join(
            short(own - all_parts, "+.2f")
            for own, all_parts in [(part.mean, whole.mean), (part.first, whole.first)]
        )
        for part in parts
        if part is not whole
    }
    return {"stream": stream, ALL: f"{whole.mean:.2f} / {whole.first:.2f}", **others}
