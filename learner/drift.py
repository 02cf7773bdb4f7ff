"""A sign that the stream has changed: records have become less likely than they used to be.

The mean score of each learning batch is held against those before it by a self-starting CUSUM
(Hawkins 1987, "Self-starting CUSUM charts for location and scale"). It works on ranks, which no
single score can move by much, and takes what batches have differed by so far for noise, so that
a stream whose neighbours resemble each other is no drift. Where scores rise, the model has become
better: the detector then begins anew, without an event.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._ordered import ranks
from .errors import StateError
from .state import record_count

FloatArray = NDArray[np.float64]

REFERENCE = 1024
"""Scores that later ones are ranked among: enough for ranks, collected within a few batches."""

SLACK = 1.0
"""Standard deviations of a batch's mean rank by which it may fall without counting."""

SMALLEST_SHIFT = 0.05
"""Least fall of the mean rank, of 0.5, that counts: a tenth of the scores gone from the middle to
the bottom. Less is not worth a message, and growth of the model can make as much."""

LIMIT = 6.0
"""Standard deviations beyond the slack that add up to an event. Where scores are independent, a
false one comes less often than every exp(2 (LIMIT + 1.166)) / 2 = 840,000 batches (Siegmund 1985,
section II.6); the margin is for streams that are less well behaved."""

FEWEST_MEANS = 12
"""Batches from which on later ones are compared with them: so many say what batches differ by."""


class Change(NamedTuple):
    """An event: the statistic that reached 1, and records since the change is likely to date."""

    statistic: float
    records: int


class Drift:
    """Self-starting CUSUM of the mean rank of each batch's scores.

    It changes in ``update`` alone, which the scorer calls at learning boundaries, and its size
    does not depend on how long it has run.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._reference = np.empty(0)
        self._n, self._mean, self._squares = 0, 0.0, 0.0
        self._fallen, self._risen, self._records = 0.0, 0.0, 0

    @property
    def statistic(self) -> float:
        """How far the scores have fallen, in [0, inf); at 1 there is an event."""
        return self._fallen / LIMIT

    @property
    def state(self) -> tuple[FloatArray, FloatArray]:
        """All that ``restore`` needs."""
        numbers = [self._n, self._mean, self._squares, self._fallen, self._risen, self._records]
        return self._reference, np.array(numbers, np.float64)

    def restore(self, reference: FloatArray, numbers: FloatArray) -> None:
        """Take up a state; StateError where it cannot be one."""
        if reference.ndim != 1 or len(reference) > REFERENCE or numbers.shape != (6,):
            raise StateError("state: expected the reference and six numbers of a drift detector")
        n, mean, squares, fallen, risen, records = numbers.tolist()
        sums = 0 <= mean <= 1 and 0 <= squares < math.inf
        if not (sums and 0 <= fallen < LIMIT and 0 <= risen < LIMIT):
            raise StateError("state: expected the sums of ranks of a drift detector")
        if len(reference) == REFERENCE and not (reference[:-1] <= reference[1:]).all():
            raise StateError("state: expected a drift detector's reference in order")
        self._reference = reference
        self._n, self._records = record_count(n), record_count(records)
        self._mean, self._squares, self._fallen, self._risen = mean, squares, fallen, risen

    def update(self, score: FloatArray) -> Change | None:
        """Take in the scores of a learning batch, and return the event that they complete."""
        if len(self._reference) < REFERENCE:
            self._collect(score)
            return None
        if len(score) > 0:
            self._compare(self._mean_rank(score), len(score))
        change = None
        if self._fallen >= LIMIT:
            change = Change(self.statistic, self._records)
        if change or self._risen >= LIMIT:
            self._begin()
        return change

    def _collect(self, score: FloatArray) -> None:
        self._reference = np.concatenate([self._reference, score])[:REFERENCE]
        if len(self._reference) == REFERENCE:
            self._reference.sort()

    def _mean_rank(self, score: FloatArray) -> float:
        """Return the mean share of the reference below the scores; equal ones count half."""
        below, not_above = (ranks(self._reference, score, ties) for ties in (False, True))
        return int((below + not_above).sum()) / (2 * REFERENCE * len(score))

    def _compare(self, mean: float, m: int) -> None:
        """Add a batch's mean rank of ``m`` scores to the sums, then to what later ones face."""
        if self._n >= FEWEST_MEANS:
            deviation = math.sqrt(self._variance(m) * (1.0 + 1.0 / self._n))
            z, slack = (mean - self._mean) / deviation, max(SLACK, SMALLEST_SHIFT / deviation)
            self._fallen = max(self._fallen - z - slack, 0.0)
            self._risen = max(self._risen + z - slack, 0.0)
            self._records = self._records + m if self._fallen > 0.0 else 0
        self._n += 1
        step = mean - self._mean
        self._mean += step / self._n
        self._squares += step * (mean - self._mean)

    def _variance(self, m: int) -> float:
        """Return that of a batch's mean rank, at least that of ``m`` independent ranks."""
        return max(self._squares / (self._n - 1), 1.0 / (12.0 * m))
