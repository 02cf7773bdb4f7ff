"""Calibration of the evidence for incidents: recent scores without those of incidents.

A p-value is a record's rank among recent records. Faults are among these, so after some of them the
next one is not unusual any more. For incidents, records are held against those of no incident.
Incidents that open by chance are so rare that this hardly changes the p-values of a stream without
faults.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError

from .ranking import Ranking
from .recent_records import RecentRecords

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LONGEST = 512
"""Records of an incident that are left out. What lasts longer may be the new normal: the guard
learns far records that come so often, too."""


class UsualScores:
    """Recent scores of records that are part of no incident.

    Changes at learning boundaries, as all calibration does.

    Attributes
    ----------
    stretches
        First and last record (k, 2) of the incidents since the last boundary, by their numbers.
    records
        The records; None while they are all recent ones.
    """

    def __init__(self) -> None:
        self.stretches = np.empty((0, 2), np.int64)
        self.records: RecentRecords | None = None

    def restore(
        self,
        stretches: IntArray,
        scores: FloatArray | None,
        measures: FloatArray | None,
        ranking: Ranking,
    ) -> None:
        """Restore a state that `measure_anew` completes; StateError if it cannot be one."""
        if stretches.ndim != 2 or stretches.shape[1] != 2:
            raise StateError("state: expected the first and last records of incidents")
        self.stretches = stretches.astype(np.int64)
        if scores is not None:
            if len(scores) == 0:
                raise StateError("state: expected scores of records in no incident")
            self.records = RecentRecords()
            self.records.restore(scores, measures, ranking)

    def p_value(self, score: FloatArray, p_value: FloatArray) -> FloatArray:
        """Return the p-values (m,) of scores; ``p_value`` are those among all recent records."""
        return p_value if self.records is None else self.records.p_value(score)

    def leave_out(self, first: int, last: int) -> None:
        """Leave out an incident that has lasted so far from record ``first`` to ``last``."""
        stretch = np.array([[first, min(last, first + LONGEST - 1)]])
        others = self.stretches[self.stretches[:, 0] != first]
        self.stretches = np.concatenate([others, stretch])

    def update(
        self,
        every: RecentRecords,
        scores: FloatArray,
        measures: FloatArray | None,
        number: IntArray,
    ) -> None:
        """Add the records of a learning batch, which have these numbers (m,).

        ``every`` are all recent ones before this batch.
        """
        within = np.zeros(len(scores), np.bool_)
        for first, last in self.stretches:
            within |= (number >= first) & (number <= last)
        self.stretches = self.stretches[:0]
        recent = None if self.records is None else self.records.scores.recent
        if recent is not None and np.array_equal(recent, every.scores.recent):
            self.records = None
        if self.records is None and within.any():
            self.records = every.copy()
        if self.records is not None:
            outside = ~within
            self.records.update(scores[outside], None if measures is None else measures[outside])

    def measure_anew(self, ranking: Ranking) -> None:
        """Let the measures have the units of a ranking that has moved."""
        if self.records is not None:
            self.records.measure_anew(ranking)
