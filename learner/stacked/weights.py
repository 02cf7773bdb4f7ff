"""Weights of the experts by the likelihood of records that they had not learned.

Stacking (Smyth and Wolpert 1999, "Linearly combining density estimators via stacking"), with
prequential log-densities in place of those of held-out folds.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    aligned_stack,
    fma,
    load,
    padded,
    spread,
    store,
)

from .product_kernels import SMALLEST

MEMORY = 512
"""Records that the weights are fitted to."""

STEPS = 10
"""Steps of EM at each boundary."""

PRIOR = 0.3
"""Records' worth added to each expert."""


def fit_weights(weight: FloatArray, history: FloatArray) -> FloatArray:
    """Improve the weights (E,) for the log-densities ``history`` (n, E) by some steps of EM."""
    n, E = history.shape
    density = np.zeros((E, padded(max(n, 2))))
    logs = np.ascontiguousarray(history.T)
    density[:, :n] = np.exp(logs - logs.max(axis=0))
    weight = weight.copy()
    improve(weight, density, STEPS, PRIOR)
    return weight


@kernel
def improve(weight: Array, density: Array, steps: int, prior: float) -> None:
    """Take steps of EM for the weights (E,) of densities (E, n); columns of zeros do not count."""
    aligned_stack()
    count, sums = np.empty(len(weight)), np.empty((len(weight), WIDTH))
    for _ in range(steps):
        sums[:] = 0.0
        for i in range(0, density.shape[1], WIDTH):
            total = spread(SMALLEST)
            for e in range(len(weight)):
                total = fma(weight[e], load(density, e, i), total)
            share = spread(1.0) / total
            for e in range(len(weight)):
                store(sums, e, 0, fma(load(density, e, i), share, load(sums, e, 0)))
        for e in range(len(weight)):
            count[e] = prior + weight[e] * sums[e].sum()
        weight[:] = count / count.sum()
