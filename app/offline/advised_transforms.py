"""Tells which transform makes a skewed field most like a normal distribution."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.scoring.transforms import Transforms
from faust_oslrau.topics.columns import MANY, Column

SKEWED = 2.0
"""Skewness from which on a transform is tried."""


def best_transform(column: Column) -> str | None:
    """Return the transform under which a field is likeliest normal; None if it is not skewed.

    That is the criterion of Box and Cox (1964), among those that leave less than half of the
    skewness.
    """
    x = column.numbers
    if len(x) < MANY or (skewness := _skewness(x)) <= SKEWED:
        return None
    lowest = x.min()  # a field with a negative number may have one below -1
    names = ["asinh"] if lowest < 0 else ["log", "log1p"] if lowest > 0 else ["log1p"]
    found = [(name, *_transformed(x, name)) for name in names]
    likely = {
        name: _log_likelihood(y, slope)
        for name, y, slope in found
        if 2 * abs(_skewness(y)) < skewness
    }
    return max(likely, key=likely.__getitem__, default=None)


def _transformed(
    x: NDArray[np.float64], name: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers (n,) transformed, and the logarithms of the slopes there."""
    transforms = Transforms({0: name})
    y = transforms.apply(x[:, None])
    return y[:, 0], transforms.log_slope(y)[:, 0]


def _log_likelihood(y: NDArray[np.float64], log_slope: NDArray[np.float64]) -> float:
    """Return that of the best normal distribution in nats, but for a constant."""
    return float(log_slope.mean()) - math.log(max(float(y.std()), np.finfo(np.float64).tiny))


def _skewness(x: NDArray[np.float64]) -> float:
    off = x - x.mean()
    deviation = float(np.sqrt(np.mean(off**2)))
    return float(np.mean((off / deviation) ** 3)) if deviation > 0.0 else 0.0
