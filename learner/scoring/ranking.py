"""How unusual records are by several measures, as one score: the lowest of them.

No measure finds every anomaly. A mixture's density does not show a small dense cluster of anomalies
once it has a component. The mass further out shows it, but knows only a few Gaussians. The distance
to recent records shows gaps of any shape, but with many fields only anomalies in most of them. The
lowest measure shows what any of them does.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.state_schema import POSITIVE, Entry, expect
from faust_oslrau.learner.stored import Stored

MEMORY = 4096
"""Records that levels and spreads are averaged over: so many that an incident changes them little,
so few that they follow the stream."""

MOST_SPREADS = 50.0
"""Spreads at which a measure's distance from its level is clipped when the spread is averaged: one
extreme value must not blind a measure for long."""

FIRST_MOST_SPREADS = 8.0
"""The same in the first batch, as a multiple of the distance that a tenth of the records exceed."""

MOVED = 0.25
"""Spreads by which an average moves before all measures are in units of theirs: more than chance
moves it. So new scores have the units of those that p-values are shares of. With units that always
followed, the rarest records of a far group alarmed twice as often as others as rare."""


def share_of_batch(m: int, n: int) -> float:
    """Return the share of the last ``m`` of ``n`` records in an average.

    Later batches weigh more than earlier ones, in proportion to the records before them, as the
    measures change while a model is young.
    """
    return min(1.0, max(2.0 * m / n, m / MEMORY))


class Ranking(Stored):
    """The lowest of several measures, each in units of its own spread among recent records.

    Changes in ``update`` alone, which the scorer calls at learning boundaries.

    Attributes
    ----------
    level, spread
        The units of each measure (k,); empty before the first batch. The level of a measure that
        began later is NaN until then.
    mean_level, mean_spread
        Median and mean absolute deviation of each measure (k,), averaged over recent batches.
    n
        Records so far.
    """

    schema: ClassVar = {
        "level": Entry(("k",), nan=True),
        "spread": Entry(("k",), POSITIVE),
        "mean_level": Entry(("k",), nan=True),
        "mean_spread": Entry(("k",), POSITIVE),
    }

    def __init__(self) -> None:
        self.level, self.spread, self.n = np.empty(0), np.empty(0), 0
        self.mean_level, self.mean_spread = self.level, self.spread

    def restore(self, arrays: Arrays, n: int) -> None:
        """Restore a state of ``n`` records; StateError if it cannot be one."""
        self.read_state(arrays)
        # A measure that began later has no level yet, but the log-density, the first, has one.
        is_known = (len(self.level) > 0) == (n > 0) and not np.isnan(self.level[:1]).any()
        is_known &= bool((np.isnan(self.level) == np.isnan(self.mean_level)).all())
        expect(is_known, "levels of measures where there are records")
        self.n = n

    def lower(self, measure: int, by: float) -> None:
        """Lower the level of a measure, as all records have it lower from now on."""
        moved = np.where(np.arange(len(self.level)) == measure, by, 0.0)
        self.level, self.mean_level = self.level - moved, self.mean_level - moved

    def leave_out(self, measure: int) -> None:
        """Have one measure less from now on, if there are any yet."""
        for name in self.schema:
            units = getattr(self, name)
            setattr(self, name, np.delete(units, slice(measure, measure + 1)))

    def score(self, measures: FloatArray) -> FloatArray:
        """Return the lowest (m,) of the measures (m, k) in spreads from their levels.

        NaN before the first update.
        """
        if self.n == 0:
            return np.full(len(measures), np.nan)
        lowest: FloatArray = np.fmin.reduce((measures - self.level) / self.spread, axis=1)
        return lowest + 0.0  # of 0 and -0 it is either, by the number of rows

    def update(self, measures: FloatArray) -> None:
        """Add the measures (m, k) of a learning batch's usual records."""
        m = len(measures)
        if m == 0:
            return
        if self.n == 0:
            self.level = self.mean_level = np.full(measures.shape[1], np.nan)
            self.spread = self.mean_spread = np.ones(measures.shape[1])
        self.n += m
        self._average(np.ascontiguousarray(measures.T))
        most = MOVED * self.spread
        is_near = np.abs(self.mean_level - self.level) <= most  # not where it begins
        if not (is_near & (np.abs(self.mean_spread - self.spread) <= most)).all():
            self.level, self.spread = self.mean_level, self.mean_spread

    def _average(self, columns: FloatArray) -> None:
        """Let the averages follow a batch of measures (k, m)."""
        m = columns.shape[1]
        level = np.partition(columns, m // 2)[:, m // 2]
        distance = np.abs(columns - level[:, None])
        farthest, fresh = MOST_SPREADS * self.mean_spread, np.isnan(self.mean_level)
        if fresh.any():
            usual = np.quantile(distance[fresh], 0.9, axis=1)
            farthest[fresh] = np.where(usual > 0, FIRST_MOST_SPREADS * usual, np.inf)
        spread = np.minimum(distance, farthest[:, None]).sum(axis=1) / m
        share = np.where(fresh, 1.0, share_of_batch(m, self.n))
        moved = self.mean_level + share * (level - self.mean_level)
        self.mean_level = np.where(fresh, level, moved)
        spread = np.where(spread > 0, spread, self.mean_spread)
        spread = self.mean_spread + share * (spread - self.mean_spread)
        # a tiny one is lost in rounding
        self.mean_spread = np.where(spread > 0, spread, self.mean_spread)
