"""What is usual in each quarter of an hour of the week."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray

from .days import HOURS, OF_HOUR, QUARTERS

DAYS_OF_WEEK = 7
WEEK = DAYS_OF_WEEK * QUARTERS
"""Quarters of an hour of a week."""

LEVEL, RATIO, LOG_RATIO = range(3)


def between_hours(hours: FloatArray) -> FloatArray:
    """Return the middles of quarters (672, d) on lines between those of ``hours`` (168, d)."""
    at = (np.arange(WEEK) + 0.5) / OF_HOUR - 0.5
    lower = np.floor(at).astype(np.int64)
    share = (at - lower)[:, None]
    n = DAYS_OF_WEEK * HOURS
    return np.asarray((1.0 - share) * hours[lower % n] + share * hours[(lower + 1) % n])


def profile(level: FloatArray, ratio: FloatArray) -> FloatArray:
    """Return level, ratio and its logarithm (3, 672, d) of each quarter."""
    return np.stack([level, ratio, np.log(ratio)])
