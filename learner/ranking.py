"""How unusual records are by several measures, as one score: the lowest of them.

No measure finds every anomaly. The density of a mixture takes a small dense cluster of anomalies
for usual once there is a component for it, and, of many fields, the noise of all hides what few
of them show. A field's distance from its mean sees neither relations nor gaps between clusters.
What one of them finds is not lost by the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .errors import StateError

FloatArray = NDArray[np.float64]

MEMORY = 4096
"""Records that levels and spreads are averaged over: enough that an incident does not become its
own yardstick, few enough to follow the stream."""

MARGIN = 1.0
"""Spreads by which another measure must be further off than the density to count instead of it:
what is a little off in many ways is most of the usual records."""

FARTHEST = 50.0
"""Spreads beyond which a measure's distance from its level counts as much as there: one wild
value must not blind a measure for long."""

FIRST_FARTHEST = 8.0
"""The same in the first batch, in units of the distance that a tenth of the records exceed."""


class Ranking:
    """The lowest of several measures, each in units of its own spread among recent records.

    Changes in ``update`` alone, which the scorer calls at learning boundaries.

    Attributes
    ----------
    level, spread
        Median and mean absolute deviation of each measure (k,), averaged over recent batches;
        empty before the first.
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

        In spreads from their levels; those after the first with a margin.
        """
        if self.n == 0:
            return np.full(len(measures), np.nan)
        # column by column: numpy is slow at rows of three
        lowest = self.score_of_density(measures[:, 0])
        for k in range(1, len(self.level)):
            off = (measures[:, k] - self.level[k]) / self.spread[k]
            lowest = np.minimum(lowest, off + MARGIN)
        return lowest

    def score_of_density(self, log_density: FloatArray) -> FloatArray:
        """Return the score (m,) of records whose other measures are as usual."""
        return np.asarray((log_density - self.level[0]) / self.spread[0], np.float64)

    def update(self, measures: FloatArray) -> None:
        """Take in the measures (m, k) of a learning batch's usual records.

        Later batches weigh more than earlier ones, in proportion to the records before them, as
        a model that is still learning moves its measures.
        """
        m = len(measures)
        if m == 0:
            return
        columns = np.ascontiguousarray(measures.T)
        level = np.partition(columns, m // 2)[:, m // 2]
        distance = np.abs(columns - level[:, None])
        if self.n == 0:
            self.level, self.spread = level, np.ones(len(level))
            farthest = FIRST_FARTHEST * np.quantile(distance, 0.9, axis=1)
            farthest[farthest == 0] = np.inf
        else:
            farthest = FARTHEST * self.spread
        spread = np.minimum(distance, farthest[:, None]).sum(axis=1) / m
        self.n += m
        share = min(1.0, max(2.0 * m / self.n, m / MEMORY))
        self.level = self.level + share * (level - self.level)
        spread = np.where(spread > 0, spread, self.spread)
        self.spread = self.spread + share * (spread - self.spread)
