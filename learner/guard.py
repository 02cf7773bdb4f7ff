"""What is kept out of learning: records far below all usual scores, unless they persist."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

FAR = 20.0
"""Interquartile ranges below the lower quartile from which a score is far: nothing that a stream
of Gaussians or exponentials shows in a million records, and close to any incident."""

FEWEST_SCORES = 240
"""Scores that quartiles are taken from at the least."""

REGIME = 512
"""As many far records within the span are no incident but a new regime."""

SPAN = 8192
"""Records over which far ones are counted: a share of up to 6 % is never taken for a regime."""


class Guard:
    """Holds far records back at learning boundaries, and hands them out if they persist.

    Attributes
    ----------
    held
        Records held back (k, d), oldest first.
    positions
        Number of each in the stream (k,).
    """

    def __init__(self) -> None:
        self.held = np.empty((0, 0))
        self.positions = np.empty(0, np.int64)

    def filter(
        self, rows: FloatArray, score: FloatArray, ascending: FloatArray, end: int
    ) -> tuple[NDArray[np.bool_], FloatArray]:
        """Part a learning batch (m, d), the stream's records up to number ``end``.

        ``ascending`` are the recent scores that its own are held against.
        Returns which of them are usual (m,), and the records of a new regime, held back before
        or now, which are to be learned after the usual ones.
        """
        far = score < fence(ascending)
        positions = np.arange(end - len(rows), end)
        if len(self.held) == 0:
            self.held = rows[:0]
        young = self.positions >= end - SPAN
        self.held = np.concatenate([self.held[young], rows[far]])
        self.positions = np.concatenate([self.positions[young], positions[far]])
        regime = rows[:0]
        if len(self.held) >= REGIME:
            regime, self.held, self.positions = self.held, rows[:0], positions[:0]
        return ~far, regime


def fence(ascending: FloatArray) -> float:
    """Score below which a record is far from the recent ones, -inf where they are too few."""
    n = len(ascending)
    if n < FEWEST_SCORES:
        return -np.inf
    lower, upper = ascending[n // 4], ascending[3 * n // 4]
    return float(lower - FAR * (upper - lower))
