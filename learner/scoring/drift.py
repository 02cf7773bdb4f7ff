"""Drift: records have become less likely than they used to be.

The mean score of each learning batch is compared with the batches before it by a self-starting
CUSUM (Hawkins 1987, "Self-starting CUSUM charts for location and scale"). It works on ranks, so
that no single score counts much. Its noise level is estimated from the differences between batches,
so that correlation between successive records is not taken for drift. When scores rise, the model
has improved: the detector starts again, without an event.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.state import record_count
from faust_oslrau.learner.state_schema import LARGEST, Entry, expect, read

from .calibration import ranks

REFERENCE_SCORES = 1024
"""Scores that later ones are ranked among: enough for ranks, collected within a few batches."""

SLACK = 1.0
"""Standard deviations of a batch's mean rank by which it may fall without counting."""

SMALLEST_SHIFT = 0.05
"""Least fall of the mean rank, which is 0.5 without drift, that counts: a tenth of the scores have
fallen from the middle to the bottom. Growth of the model can cause smaller falls."""

LIMIT = 6.0
"""Standard deviations beyond the slack that add up to an event. Where scores are independent, a
false one comes less often than every exp(2 (LIMIT + 1.166)) / 2 = 840,000 batches (Siegmund 1985,
section II.6). Real streams have more."""

FEWEST_MEANS = 12
"""Batches needed to estimate the noise level, before later ones are compared with them."""


class Change(NamedTuple):
    """An event: the statistic, at least 1, and the likely number of records since the change."""

    statistic: float
    records: int


_BELOW = float(np.nextafter(LIMIT, 0.0))
_DRIFT = {
    "drift_reference": Entry(("n",), -np.inf, np.inf, nan=True),
    "drift_numbers": Entry((6,), 0, [LARGEST, 1, LARGEST, _BELOW, _BELOW, LARGEST]),
}


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

    def state(self) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        numbers = [self._n, self._mean, self._squares, self._fallen, self._risen, self._records]
        return {"drift_reference": self._reference, "drift_numbers": np.array(numbers, np.float64)}

    def restore(self, arrays: Arrays) -> None:
        """Restore a state; StateError if it cannot be one."""
        reference, numbers = read(arrays, _DRIFT, n=range(REFERENCE_SCORES + 1))
        is_sorted = len(reference) < REFERENCE_SCORES or (reference[:-1] <= reference[1:]).all()
        expect(is_sorted, "a drift detector's reference in order")
        n, mean, squares, fallen, risen, records = numbers.tolist()
        self._reference, self._n, self._records = reference, record_count(n), record_count(records)
        self._mean, self._squares, self._fallen, self._risen = mean, squares, fallen, risen

    def update(self, score: FloatArray) -> Change | None:
        """Add the scores of a learning batch, and return the event if they complete one."""
        if len(self._reference) < REFERENCE_SCORES:
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
        self._reference = np.concatenate([self._reference, score])[:REFERENCE_SCORES]
        if len(self._reference) == REFERENCE_SCORES:
            self._reference.sort()

    def _mean_rank(self, score: FloatArray) -> float:
        """Return the mean share of the reference below the scores; equal ones count half."""
        below, not_above = ranks(self._reference, score)
        return int((below + not_above).sum()) / (2 * REFERENCE_SCORES * len(score))

    def _compare(self, mean: float, m: int) -> None:
        """Compare a batch's mean rank of ``m`` scores with earlier ones, then add it to them."""
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
        """Return the variance of a batch's mean rank, at least that of ``m`` independent ranks."""
        return max(self._squares / (self._n - 1), 1.0 / (12.0 * m))
