"""How unusual records are by several measures, as one score: the lowest of them.

No measure finds every anomaly. The density of a mixture takes a small dense cluster of anomalies
for usual once there is a component for it. The mass further out does not, but it knows only a few
Gaussians. The distance to recent records sees gaps of any shape, but of many fields only what
shows in most. What one of them finds is not lost by the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import StateError

FloatArray = NDArray[np.float64]


MEMORY = 4096
"""Records that levels and spreads are averaged over: enough that an incident does not become its
own yardstick, few enough to follow the stream."""


FARTHEST = 50.0
"""Spreads beyond which a measure's distance from its level counts as much as there: one wild
value must not blind a measure for long."""


FIRST_FARTHEST = 8.0
"""The same in the first batch, in units of the distance that a tenth of the records exceed."""


def share_of_batch(m: int, n: int) -> float:
    """Tell what the last ``m`` of ``n`` records count in an average.

    Later batches weigh more than earlier ones, in proportion to the records before them, as a
    model that is still learning moves its measures.
    """
    return min(1.0, max(2.0 * m / n, m / MEMORY))


class Ranking:
    """The lowest of several measures, each in units of its own spread among recent records.

    Changes in ``update`` alone, which the scorer calls at learning boundaries.

    Attributes
    ----------
    level, spread
        Median and mean absolute deviation of each measure (k,), averaged over recent batches;
        empty before the first. The level of a measure that began later is NaN until then.
    n
        Records so far.
    """

    def __init__(self) -> None:
        self.level, self.spread, self.n = np.empty(0), np.empty(0), 0

    def restore(self, level: FloatArray, spread: FloatArray, n: int) -> None:
        """Take up a state; StateError where it cannot be one."""
        if level.ndim != 1 or level.shape != spread.shape or not (spread > 0).all():
            raise StateError("state: expected a level and a positive spread for each measure")
        self.level, self.spread, self.n = level, spread, n

    def score(self, measures: FloatArray) -> FloatArray:
        """Return the lowest (m,) of the measures (m, k), NaN before the first update.

        In spreads from their levels.
        """
        if self.n == 0:
            return np.full(len(measures), np.nan)
        # column by column: numpy is slow at rows of three
        lowest = np.full(len(measures), np.nan)
        for k, (level, spread) in enumerate(zip(self.level, self.spread, strict=True)):
            lowest = np.fmin(lowest, (measures[:, k] - level) / spread)
        return lowest

    def update(self, measures: FloatArray) -> None:
        """Take in the measures (m, k) of a learning batch's usual records."""
        m = len(measures)
        if m == 0:
            return
        if self.n == 0:
            self.level = np.full(measures.shape[1], np.nan)
            self.spread = np.ones(measures.shape[1])
        self.n += m
        columns = np.ascontiguousarray(measures.T)
        level = np.partition(columns, m // 2)[:, m // 2]
        distance = np.abs(columns - level[:, None])
        farthest, fresh = FARTHEST * self.spread, np.isnan(self.level)
        if fresh.any():
            usual = np.quantile(distance[fresh], 0.9, axis=1)
            farthest[fresh] = np.where(usual > 0, FIRST_FARTHEST * usual, np.inf)
        spread = np.minimum(distance, farthest[:, None]).sum(axis=1) / m
        share = np.where(fresh, 1.0, share_of_batch(m, self.n))
        self.level = np.where(fresh, level, self.level + share * (level - self.level))
        spread = np.where(spread > 0, spread, self.spread)
        self.spread = self.spread + share * (spread - self.spread)
