"""Bursts: a few records too unusual to be chance, without which later ones are judged.

A p-value is a rank among recent records. So after some bursts, the records of the next one are no
more unusual than a share of the recent ones, which is larger than the alarm rate.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError

from .calibration import RECENT

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

DOUBTLESS = 0.01
"""Largest p-value of a burst's records, as a multiple of the alarm rate. One usual record in so
many alarms is as unusual, so that leaving them out hardly raises the rate."""

LARGEST = 1 / 8
"""Share of a learning batch that may be a burst. More may be a new regime."""

MOST = RECENT // 100
"""Most records left out among as many as are recent: what comes more often is usual."""

FEWEST = 1024
"""Recent records from which on p-values tell what is no chance."""


class Bursts:
    """Finds the records of bursts at learning boundaries.

    Attributes
    ----------
    left_out
        The records left out among the recent ones, each of which fades with time.
    """

    def __init__(self) -> None:
        self.left_out = 0.0

    def restore(self, left_out: float) -> None:
        """Restore a state; StateError if it cannot be one."""
        if not 0.0 <= left_out <= MOST:
            raise StateError("state: expected a number of records left out")
        self.left_out = left_out

    def find(self, p_value: FloatArray, alarm_rate: float, n_recent: int) -> BoolArray:
        """Tell which records (m,) of a learning batch are those of a burst."""
        m = len(p_value)
        self.left_out *= math.exp(-m / RECENT)
        found = p_value <= DOUBTLESS * alarm_rate
        if n_recent < FEWEST or np.count_nonzero(found) > LARGEST * m:
            return np.zeros(m, np.bool_)
        found[np.flatnonzero(found)[int(MOST - self.left_out) :]] = False
        self.left_out += np.count_nonzero(found)
        return found
