"""Weights of the experts by the likelihood of records that they had not learned.

Stacking (Smyth and Wolpert 1999, "Linearly combining density estimators via stacking"), with
prequential log-densities in place of those of held-out folds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.vector.compiler import Array, kernel

FloatArray = NDArray[np.float64]

MEMORY = 512
"""Records that the weights are fitted to."""

STEPS = 10
"""Steps of EM at each boundary."""

PRIOR = 0.3
"""Records' worth added to each expert."""


def fit_weights(weight: FloatArray, history: FloatArray) -> FloatArray:
    """Improve the weights (E,) for the log-densities ``history`` (n, E) by some steps of EM."""
    density = np.exp(history - history.max(axis=1, keepdims=True))
    weight = weight.copy()
    improve(weight, density, STEPS, PRIOR)
    return weight


@kernel
def improve(weight: Array, density: Array, steps: int, prior: float) -> None:
    """Take steps of EM for the weights (E,) of densities (n, E)."""
    n, E = density.shape
    count = np.empty(E)
    for _ in range(steps):
        count[:] = prior
        for i in range(n):
            total = 0.0
            for e in range(E):
                total += density[i, e] * weight[e]
            for e in range(E):
                count[e] += density[i, e] * weight[e] / total
        weight[:] = count / count.sum()
