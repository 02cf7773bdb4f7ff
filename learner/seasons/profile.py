"""What is usual at each moment of the week, from what is usual in each quarter of an hour.

Fields that follow the sun change steadily, those that follow opening hours jump. So within a
quarter of an hour the level changes linearly, by the slope between its neighbours, but no further
than halfway to twice either neighbour's difference: where a field jumps, it does not begin to rise
before (the monotonised central slope, van Leer 1977).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.vector.compiler import Array, kernel

from .days import HOURS, OF_HOUR, QUARTERS

FloatArray = NDArray[np.float64]

DAYS_OF_WEEK = 7
WEEK = DAYS_OF_WEEK * QUARTERS
"""Quarters of an hour of a week."""

LEVEL, LEVEL_SLOPE, RATIO, RATIO_SLOPE = range(4)
"""Numbers of a quarter: in its middle, and how much more it is at the end than at the beginning."""


def between_hours(hours: FloatArray) -> FloatArray:
    """Return the middles of quarters (672, d) on lines between those of ``hours`` (168, d)."""
    at = (np.arange(WEEK) + 0.5) / OF_HOUR - 0.5
    lower = np.floor(at).astype(np.int64)
    share = (at - lower)[:, None]
    n = DAYS_OF_WEEK * HOURS
    return np.asarray((1.0 - share) * hours[lower % n] + share * hours[(lower + 1) % n])


def slopes(values: FloatArray) -> FloatArray:
    """Return how much ``values`` (n, d) in a circle change within each, without new extremes."""
    before = values - np.roll(values, 1, axis=0)
    after = np.roll(before, -1, axis=0)
    central = (before + after) / 2.0
    most = 2.0 * np.minimum(np.abs(before), np.abs(after))
    return np.where(before * after > 0.0, np.clip(central, -most, most), 0.0)


def profile(level: FloatArray, ratio: FloatArray) -> FloatArray:
    """Return the numbers (672, d, 4) of each quarter, from levels and ratios (672, d)."""
    return np.stack([level, slopes(level), ratio, slopes(ratio)], axis=2)


@kernel
def subtract(
    X: Array,
    weekdays: Array,
    hours: Array,
    usual: Array,
    centre: Array,
    rows: Array,
    jacobian: Array,
    units: Array,
) -> None:
    """Fill ``rows`` (m, d) with centre + (X - centre - level) / ratio, those of their time.

    ``usual`` (672, d, 4) is a profile, ``centre`` (d,) what an average hour has. A negative day of
    the week is unknown: nothing is subtracted. Fills ``jacobian`` (m,) and ``units`` (m, d, 2) as
    `SeasonalRows` has them.
    """
    for r in range(X.shape[0]):
        place = hours[r] * OF_HOUR
        quarter = math.floor(place)
        share = place - quarter - 0.5
        of_week = int(weekdays[r]) * QUARTERS + int(quarter)
        total = 0.0
        for v in range(X.shape[1]):
            shift, ratio = 0.0, 1.0
            if weekdays[r] >= 0:
                own = usual[of_week, v]
                ratio = own[RATIO] + share * own[RATIO_SLOPE]
                shift = own[LEVEL] + share * own[LEVEL_SLOPE] + centre[v] * (1.0 - ratio)
            units[r, v, 0], units[r, v, 1] = shift, ratio
            rows[r, v] = (X[r, v] - shift) / ratio
            if X[r, v] == X[r, v]:
                total -= math.log(ratio)
        jacobian[r] = total
