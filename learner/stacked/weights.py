"""Weights of the experts by the likelihood of records that they had not learned.

Stacking (Smyth and Wolpert 1999, "Linearly combining density estimators via stacking"), with
prequential log-densities in place of those of held-out folds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    for _ in range(STEPS):
        share = density * weight
        count = (share / share.sum(axis=1, keepdims=True)).sum(axis=0) + PRIOR
        weight = count / count.sum()
    return weight
