"""p-values of scores against recent records, whose measures have units that move."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError

from .calibration import RECENT, TAIL_SHARE, Calibration
from .ranking import Ranking

FloatArray = NDArray[np.float64]

YOUNG = 1024
"""Records of a stream without measures that later ones are held against: in the units of now, those
of a young model are worse than they were."""

FEWEST = 1024
"""Fewest records that others are held against in the units of now."""


class RecentRecords:
    """Recent records by their scores, as these were and as they would be now.

    A score is in units of a `Ranking`, which follow the stream. A record is held against the
    scores of their time: so a stream that drifts away from its model has no more anomalies than
    others. It is also held against the measures of the recent records in the units of now: a
    regime that comes back has the measures that it had, though its scores are lower if the units
    have become smaller in the meantime. Of the lowest tenth, the higher p-value counts.

    Attributes
    ----------
    scores
        The scores as they were.
    measures
        Measures (n, k) of the last of these records, without those of a young stream. None are kept
        if a score is more than the lowest of them in these units, as with entities.
    """

    def __init__(self) -> None:
        self.scores = Calibration()
        self.measures = np.empty((0, 0))
        self._now: Calibration | None = None

    @property
    def scores_now(self) -> FloatArray | None:
        """Scores (n,) of the records with measures in the units of now, oldest first.

        None while these are few.
        """
        return None if self._now is None else self._now.recent

    def restore(self, scores: FloatArray, measures: FloatArray | None, ranking: Ranking) -> None:
        """Restore a state that `measure_anew` completes; StateError if it cannot be one."""
        if scores.ndim != 1 or len(scores) > RECENT or np.isnan(scores).any():
            raise StateError("state: expected recent scores")
        self.scores.restore(scores)
        if measures is not None:
            if measures.shape[1:] != ranking.level.shape or not 0 < len(measures) <= len(scores):
                raise StateError("state: expected the measures of recent records")
            if np.isnan(measures[:, :1]).any() or ranking.n == 0:
                raise StateError("state: expected a log-density of each recent record")
            self.measures = measures

    def copy(self) -> RecentRecords:
        """Return the same records, to which others can be added."""
        same = RecentRecords()
        same.scores.restore(self.scores.recent)
        same.measures = self.measures
        return same

    def update(self, scores: FloatArray, measures: FloatArray | None) -> None:
        """Add records of a learning batch, with scores (m,) and measures (m, k), if they count."""
        self.scores.update(scores)
        if measures is not None:
            before = self.measures if len(self.measures) > 0 else measures[:0]
            n = min(len(before) + len(measures), len(self.scores.recent))
            self.measures = np.concatenate([before, measures])[-n:]

    def select(self, which: NDArray[np.bool_]) -> None:
        """Forget all records of a young stream except those where ``which`` (n,) is true."""
        self.scores.select(which)

    def measure_anew(self, ranking: Ranking) -> None:
        """Let the measures have the units of a ranking that has moved."""
        if len(self.measures) >= FEWEST:
            self._now = Calibration()
            self._now.restore(ranking.score(self.measures))

    def p_value(self, score: FloatArray) -> FloatArray:
        """Return the p-values (m,) of scores, NaN before the first update."""
        p_value = self.scores.p_value(score)
        if self._now is not None:
            compare_again(p_value, score, self._now)
        return p_value


def compare_again(
    p_value: FloatArray, score: FloatArray, now: Calibration, which: NDArray[np.bool_] | bool = True
) -> None:
    """Raise p-values (m,) in the lowest tenth to those among scores of now, if these are higher.

    To the tenth at most, and only of ``which`` (m,) scores (m,).
    """
    low = which & (p_value < TAIL_SHARE)
    if low.any():
        again = np.minimum(now.p_value(score[low]), TAIL_SHARE)
        p_value[low] = np.maximum(p_value[low], again)
