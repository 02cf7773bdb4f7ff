"""Scores in units of entities of the same age: how unusual a record is for what is known so far.

The records of an entity that few records are known of are predicted less well, so they have lower
scores. So a score counts by its distance from the mean score of entities with about as many
records, in deviations of these. Units of each entity's own were tried: they rank worse.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.state_schema import LARGEST, LARGEST_LEARNED, Entry
from faust_oslrau.learner.stored import SLOTS, Stored
from faust_oslrau.learner.vector.compiler import Array, kernel

from .kinds import MEMORY

AGES = np.array([1.0, 4.0, 16.0, 64.0])
"""Scores of an entity from which on it is of the next age."""

OLDER_SCORES = 8.0
"""Scores that the mean and deviation of the next age stand for in those of an age."""

LEAST_VARIANCE = 1e-6
"""Least variance of an age's scores."""

FARTHEST = 10.0
"""Usual deviations by which one score may lie off the mean of its age at the most."""


@kernel
def relate(
    score: Array,
    slots: Array,
    fresh: Array,
    counts: Array,
    units: Array,
    sums: Array,
    result: Array,
) -> None:
    """Fill ``result`` (m,) with scores (m,) in units of their ages, and learn them one by one.

    ``counts`` (slots,) are the entities' scores so far, up to the last age; ``units`` (ages, 2)
    have mean and deviation of the scores of each age. Adds to ``sums`` (ages, 3): number, sum and
    sum of squares of the scores.
    """
    for r in range(len(score)):
        if fresh[r]:
            counts[slots[r]] = 0.0
        age = np.searchsorted(AGES, counts[slots[r]], side="right")
        centre, deviation = units[age, 0], units[age, 1]
        z = (score[r] - centre) / deviation
        result[r] = z
        if z == z:
            limited = centre + min(max(z, -FARTHEST), FARTHEST) * deviation
            sums[age, 0] += 1.0
            sums[age, 1] += limited
            sums[age, 2] += limited * limited
            counts[slots[r]] = min(counts[slots[r]] + 1.0, AGES[-1])


_SUMS = Entry((len(AGES) + 1, 3), [0.0, -LARGEST_LEARNED, 0.0], [LARGEST, LARGEST_LEARNED, LARGEST])


class AgeScores(Stored):
    """The usual scores of entities of each age.

    An entity's number of scores changes with each record. What is shared changes in ``end_batch``.
    """

    schema: ClassVar = {
        "_scores": Entry((SLOTS,), 0.0),
        "_score_ages": _SUMS,
        "_new_score_ages": _SUMS,
    }
    prefix = "entity_"

    def __init__(self) -> None:
        self._scores = np.empty(0)
        self._score_ages, self._new_score_ages = np.zeros((2, len(AGES) + 1, 3))
        self._units = age_units(self._score_ages)

    def relate(self, score: FloatArray, slots: IntArray, fresh: Mask) -> FloatArray:
        """Return the scores (m,) of the next rows in units of their entities' (m,) ages."""
        result = np.empty(len(score))
        relate(score, slots, fresh, self._scores, self._units, self._new_score_ages, result)
        return result

    def end_batch(self, *, learning: bool) -> None:
        """End a learning batch: learn the usual scores of each age."""
        if learning:
            new = self._new_score_ages
            self._score_ages = self._score_ages * np.exp(-new[:, :1] / MEMORY) + new
            self._units = age_units(self._score_ages)
        self._new_score_ages = np.zeros_like(self._new_score_ages)

    def restore(self, arrays: Arrays, k: int) -> None:
        """Restore a state of ``k`` entities; StateError if it cannot be one."""
        self.read_state(arrays, slots=k)
        self._units = age_units(self._score_ages)


def age_units(sums: FloatArray) -> FloatArray:
    """Return mean and deviation (ages, 2) of the scores of each age, from their sums (ages, 3).

    Few scores of an age are taken together with those of the next one; without any scores, they
    are 0 and 1.
    """
    units = np.empty((len(sums), 2))
    n, total, squares = sums.sum(axis=0).tolist()
    mean = total / n if n > 0.0 else 0.0
    variance = max(squares / n - mean * mean, LEAST_VARIANCE) if n > 0.0 else 1.0
    for age in range(len(sums) - 1, -1, -1):
        n, total, squares = sums[age].tolist()
        older, weight = mean, n + OLDER_SCORES
        mean = (total + OLDER_SCORES * older) / weight
        around = squares - 2.0 * mean * total + n * mean * mean
        around += OLDER_SCORES * (variance + (older - mean) ** 2)
        variance = max(around / weight, LEAST_VARIANCE)
        units[age] = mean, math.sqrt(variance)
    return units
