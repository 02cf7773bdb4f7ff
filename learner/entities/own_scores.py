"""Scores in units of the entity's own: how unusual a record is for its entity.

The records of an entity that few records are known of are predicted less well, so they have lower
scores. Entities of a kind that the network describes less well, or that vary by nature, have lower
scores all the time. So a score counts by its distance from the mean score of entities with about as
many records, in deviations of these; then by its distance from the entity's own mean in its own
deviations, both drawn to those of all entities.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.state_schema import LARGEST, Arrays, Entry, read
from faust_oslrau.learner.vector.compiler import Array, kernel

from .roster import enlarged

FloatArray = NDArray[np.float64]

COUNT, MEAN, VARIANCE = range(3)
"""Statistics of an entity's scores."""

AGES = np.array([1.0, 4.0, 16.0, 64.0])
"""Scores of an entity from which on it is of the next age."""

MEMORY = np.array([[100.0], *[[2000.0]] * len(AGES)])
"""Scores of each age that its mean and deviation remember. First records are few, and lie in units
that change as more is known of what entities are like: older ones would mislead."""

PRIOR_SCORES = 16.0
"""Scores that mean and deviation of all entities stand for in those of one, and those of the next
age in those of an age."""

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

    ``own`` (slots, 3) are the statistics, ``units`` (ages, 2) have mean and deviation of the scores
    of each age. Adds to ``sums`` (ages, 3): number, sum and sum of squares of the scores.
    """
    for r in range(len(score)):
        mine = own[slots[r]]
        if fresh[r]:
            mine[:] = 0.0
        n = mine[COUNT]
        age = np.searchsorted(AGES, n, side="right")
        centre, deviation = units[age]
        z = (score[r] - centre) / deviation
        variance = (PRIOR_SCORES + n * mine[VARIANCE]) / (PRIOR_SCORES + n)
        result[r] = (z - n * mine[MEAN] / (PRIOR_SCORES + n)) / math.sqrt(variance)
        if z == z:
            limited = centre + min(max(z, -FARTHEST), FARTHEST) * deviation
            sums[age, 0] += 1.0
            sums[age, 1] += limited
            sums[age, 2] += limited * limited
            step = min(max(z - mine[MEAN], -FARTHEST), FARTHEST)
            share = max(1.0 / (n + 1.0), 1.0 / LONGEST)
            mine[MEAN] += share * step
            mine[VARIANCE] = (1.0 - share) * (mine[VARIANCE] + share * step * step)
            mine[COUNT] = min(n + 1.0, LONGEST)


_NOT_NEGATIVE = [0.0, -LARGEST, 0.0]
_AGES = Entry((len(MEMORY), 3), _NOT_NEGATIVE)
_SCORES = {
    "scores": Entry(("k", 3), _NOT_NEGATIVE),
    "score_ages": _AGES,
    "new_score_ages": _AGES,
}


class OwnScores:
    """The usual scores of each entity, and of entities of each age.

    An entity's statistics change with each record. What is shared changes in ``end_batch`` alone.
    """

    def __init__(self) -> None:
        self._own = np.empty((0, 3))
        self._ages, self._new = np.zeros((2, len(MEMORY), 3))
        self._units = age_units(self._ages)

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
        """End a learning batch: learn the usual scores of each age."""
        if learning:
            self._ages = self._ages * np.exp(-self._new[:, :1] / MEMORY) + self._new
            self._units = age_units(self._ages)
        self._new = np.zeros_like(self._new)

    def state(self, k: int) -> Arrays:
        """Return all that ``restore`` needs, of ``k`` entities, as arrays."""
        return {
            "entity_scores": self._own[:k],
            "entity_score_ages": self._ages,
            "entity_new_score_ages": self._new,
        }

    def restore(self, arrays: Arrays, k: int) -> None:
        """Restore a state of ``k`` entities; StateError if it cannot be one."""
        self._own, self._ages, self._new = read(arrays, _SCORES, "entity_", k=k)
        self._units = age_units(self._ages)


def age_units(sums: FloatArray) -> FloatArray:
    """Return mean and deviation (ages, 2) of the scores of each age, from their sums (ages, 3).

    Few scores are taken together with `PRIOR_SCORES` of the next age; those of the last age with
    as many of mean 0 and deviation 1.
    """
    units, mean, variance = np.empty((len(sums), 2)), 0.0, 1.0
    for age in range(len(sums) - 1, -1, -1):
        n, total, squares = sums[age].tolist()
        weight, prior = n + PRIOR_SCORES, PRIOR_SCORES * (variance + mean * mean)
        mean = (total + PRIOR_SCORES * mean) / weight
        variance = max((squares + prior) / weight - mean * mean, 1e-6)
        units[age] = mean, math.sqrt(variance)
    return units
