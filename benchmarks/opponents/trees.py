"""Online EM and Bayesian moment matching, each on a random structure and on a mixture's."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.crossval import Fit
from benchmarks.datasets import Array

from .expectation_maximisation import OnlineEM
from .moment_matching import MomentMatching
from .online import OnePass
from .sizes import Size
from .structure import Structure, mixture_tree, random_tree

Learner = Callable[[Structure, Array], OnlineEM | MomentMatching]


def of_mixture(learner: Learner) -> Callable[[Size], Fit]:
    return lambda size: OnePass(lambda first: learner(*mixture_tree(first)))


def of_random(learner: Learner) -> Callable[[Size], Fit]:
    return lambda size: OnePass(
        lambda first: learner(*random_tree(first.shape[1], size.nodes, size.seed))
    )


METHODS: dict[str, Callable[[Size], Fit]] = {
    "online EM, mixture": of_mixture(OnlineEM),
    "online EM, random": of_random(OnlineEM),
    "moment matching, mixture": of_mixture(MomentMatching),
    "moment matching, random": of_random(MomentMatching),
}
