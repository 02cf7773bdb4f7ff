"""Scores in units of the entity's own: how unusual a record is for its entity.

Nothing is known of an entity before its first record, so first records have lower scores. Entities
of a kind that the network describes less well, or that vary by nature, have lower scores all the
time. So a score counts by its distance from the mean score of first records, or of all others, in
deviations of these; then by its distance from the entity's own mean in its own deviations, both
drawn to those of all entities.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.state_schema import LARGEST, Arrays, Entry, read
from faust_oslrau.learner.vector.compiler import Array, kernel

from .habit_kernels import FIRST, LATER
from .roster import enlarged

FloatArray = NDArray[np.float64]

COUNT, MEAN, VARIANCE = range(3)
"""Statistics of an entity's scores."""

MEMORY = np.array([[100.0], [2000.0]])
"""Scores of each stratum that its mean and deviation remember. First records are few, and lie in
units that change as more is known of what entities are like: older ones would mislead."""

PRIOR_SCORES = 16.0
"""Scores that mean and deviation of all entities stand for in an entity's own, and those of later
records in those of first ones."""

LONGEST = 250.0
"""Records that the statistics of an entity's scores remember."""

FARTHEST = 6.0
"""Usual deviations by which one score may lie off its mean at the most: an anomaly must not make
the next one look usual."""


@kernel
def relate(
    score: Array, slots: Array, fresh: Array, own: Array, units: Array, sums: Array, result: Array
) -> None:
    """Fill ``result`` (m,) with scores (m,) in units of their entities, and learn them one by one.

    ``own`` (slots, 3) are the statistics, ``units`` (2, 2) have mean and deviation of the scores of
    each stratum. Adds to ``sums`` (2, 3): number, sum and sum of squares of the scores.
    """
    for r in range(len(score)):
        mine = own[slots[r]]
        if fresh[r]:
            mine[:] = 0.0
        n = mine[COUNT]
        stratum = LATER if n > 0.0 else FIRST
        centre, deviation = units[stratum]
        z = (score[r] - centre) / deviation
        variance = (PRIOR_SCORES + n * mine[VARIANCE]) / (PRIOR_SCORES + n)
        result[r] = (z - n * mine[MEAN] / (PRIOR_SCORES + n)) / math.sqrt(variance)
        if z == z:
            limited = centre + min(max(z, -FARTHEST), FARTHEST) * deviation
            sums[stratum, 0] += 1.0
            sums[stratum, 1] += limited
            sums[stratum, 2] += limited * limited
            step = min(max(z - mine[MEAN], -FARTHEST), FARTHEST)
            share = max(1.0 / (n + 1.0), 1.0 / LONGEST)
            mine[MEAN] += share * step
            mine[VARIANCE] = (1.0 - share) * (mine[VARIANCE] + share * step * step)
            mine[COUNT] = min(n + 1.0, LONGEST)


_NOT_NEGATIVE = [0.0, -LARGEST, 0.0]
_STRATA = Entry((2, 3), _NOT_NEGATIVE)
_SCORES = {
    "scores": Entry(("k", 3), _NOT_NEGATIVE),
    "score_strata": _STRATA,
    "new_score_strata": _STRATA,
}


class OwnScores:
    """The usual scores of each entity, of first records, and of all others.

    An entity's statistics change with each record. What is shared changes in ``end_batch`` alone.
    """

    def __init__(self) -> None:
        self._own = np.empty((0, 3))
        self._strata, self._new = np.zeros((2, 2, 3))
        self._units = strata_units(self._strata)

    def reserve(self, room: int) -> None:
        """Make room for so many entities."""
        self._own = enlarged(self._own, room)

    def relate(
        self, score: FloatArray, slots: NDArray[np.int64], fresh: NDArray[np.bool_]
    ) -> FloatArray:
        """Return the scores (m,) of the next rows in units of their entities (m,)."""
        result = np.empty(len(score))
        relate(score, slots, fresh, self._own, self._units, self._new, result)
        return result

    def end_batch(self, *, learning: bool) -> None:
        """End a learning batch: learn the usual scores of each stratum."""
        if learning:
            self._strata = self._strata * np.exp(-self._new[:, :1] / MEMORY) + self._new
            self._units = strata_units(self._strata)
        self._new = np.zeros_like(self._new)

    def state(self, k: int) -> Arrays:
        """Return all that ``restore`` needs, of ``k`` entities, as arrays."""
        return {
            "entity_scores": self._own[:k],
            "entity_score_strata": self._strata,
            "entity_new_score_strata": self._new,
        }

    def restore(self, arrays: Arrays, k: int) -> None:
        """Restore a state of ``k`` entities; StateError if it cannot be one."""
        self._own, self._strata, self._new = read(arrays, _SCORES, "entity_", k=k)
        self._units = strata_units(self._strata)


def strata_units(sums: FloatArray) -> FloatArray:
    """Return mean and deviation (2, 2) of the scores of each stratum, from their sums (2, 3).

    Few scores are taken together with `PRIOR_SCORES` of the later records, and few of these with as
    many of mean 0 and deviation 1.
    """
    units, mean, variance = np.empty((2, 2)), 0.0, 1.0
    for stratum in (LATER, FIRST):
        n, total, squares = sums[stratum].tolist()
        weight, prior = n + PRIOR_SCORES, PRIOR_SCORES * (variance + mean * mean)
        mean = (total + PRIOR_SCORES * mean) / weight
        variance = max((squares + prior) / weight - mean * mean, 1e-6)
        units[stratum] = mean, math.sqrt(variance)
    return units
