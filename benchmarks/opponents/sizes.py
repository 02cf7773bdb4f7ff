"""What an opponent may be as large as, and the densities of those that have no nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from benchmarks.datasets import Array

DRAWS = 16
"""Noise that is drawn for each row, where a density has no variances to raise."""

MOST_HELD_OUT = 10_000
"""Training rows that say when gradient descent stops."""

MOST_SEEN = 600_000
"""Rows, each as often as it comes, after which gradient descent ends with its epoch, though the
loss still falls."""


class Size(NamedTuple):
    """The size of oSLRAU's network on the same fold, and a seed."""

    nodes: int
    parameters: int
    seed: int


@dataclass(frozen=True)
class Opaque:
    """A log-density (m,) of rows (m, d) that is not made of nodes.

    A least variance is Gaussian noise on its records, as it is for a Gaussian. The density with
    noise is the mean over ``DRAWS`` draws, whose logarithm is a little low on average.
    """

    log_density: Callable[[Array], Array]
    n_parameters_: int
    n_nodes_: int = 0

    def score_samples(self, X: Array, *, variance_floor: float | None = None) -> Array:
        if variance_floor is None:
            return self.log_density(X)
        rng, scale = np.random.default_rng(0), np.sqrt(variance_floor)
        drawn = [self.log_density(X - scale * rng.normal(size=X.shape)) for _ in range(DRAWS)]
        return np.asarray(logsumexp(drawn, axis=0) - np.log(DRAWS))
