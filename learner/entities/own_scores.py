"""Scores in units of the entity's own: how unusual a record is for its entity.

The records of an entity that few records are known of are predicted less well, so they have lower
scores. Entities of a kind that the network describes less well, or that vary by nature, have lower
scores all the time. So a score counts by its distance from the mean score of entities with about as
many records, in deviations of these; then by its distance from the entity's own mean in its own
deviations, both shrunk to those of all entities.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.state_schema import LARGEST, POSITIVE, Arrays, Entry, read
from faust_oslrau.learner.vector.compiler import Array, kernel

from .population import variance_prior, weighted_mean
from .roster import enlarged

FloatArray = NDArray[np.float64]

COUNT, MEAN, VARIANCE = range(3)
"""Statistics of an entity's scores."""

LEVEL, SHRINKAGE, NU, TAU2 = range(4)
"""What entities are like: their mean score, the records that it stands for in an entity's own, and
the prior of their variances."""

AGES = np.array([1.0, 4.0, 16.0, 64.0])
"""Scores of an entity from which on it is of the next age."""

AGE_MEMORY = np.array([[100.0], *[[2000.0]] * len(AGES)])
"""Scores of each age (ages, 1) that its mean and deviation remember. First records are few, and
lie in units that change as more is known of what entities are like: older ones would mislead."""

OLDER_SCORES = 8.0
"""Scores that the mean and deviation of the next age stand for in those of an age."""

LEAST_VARIANCE = 1e-6
"""Least variance of an age's scores."""

LONGEST = 250.0
"""Records that the statistics of an entity's scores remember."""

FARTHEST = 6.0
"""Usual deviations by which one score may lie off its entity's mean at the most: an anomaly must
not make the next one look usual."""

FARTHEST_OF_AGE = 10.0
"""The same for the mean of an age: first records vary far more."""

VALUE = 0.5
"""What a score says about the variance, as a share of what a Gaussian number says: low scores are
heavy-tailed."""

FEWEST_SCORES = 16.0
"""Scores of an entity from which on it tells what entities are like: the variances of a few
heavy-tailed scores differ so much by chance that entities would seem to be alike."""

FEWEST_ENTITIES = 5
"""Such entities from which on there are own units."""

LEAST_SHRINKAGE, MOST_SHRINKAGE = 2.0, 1e4


@kernel
def relate(
    score: Array,
    slots: Array,
    fresh: Array,
    own: Array,
    population: Array,
    units: Array,
    sums: Array,
    result: Array,
) -> None:
    """Fill ``result`` (m,) with scores (m,) in units of their entities, and learn them one by one.

    ``own`` (slots, 3) are the statistics, ``population`` (4,) is what entities are like, ``units``
    (ages, 2) have mean and deviation of the scores of each age. Adds to ``sums`` (ages, 3): number,
    sum and sum of squares of the scores.
    """
    level, shrinkage = population[LEVEL], population[SHRINKAGE]
    nu, tau2 = population[NU], population[TAU2]
    for r in range(len(score)):
        mine = own[slots[r]]
        if fresh[r]:
            mine[:] = 0.0
        n = mine[COUNT]
        age = np.searchsorted(AGES, n, side="right")
        centre, deviation = units[age, 0], units[age, 1]
        z = (score[r] - centre) / deviation
        middle = (shrinkage * level + n * mine[MEAN]) / (shrinkage + n)
        variance = (nu * tau2 + VALUE * n * mine[VARIANCE]) / (nu + VALUE * n)
        result[r] = (z - middle) / math.sqrt(variance)
        if z == z:
            limited = centre + min(max(z, -FARTHEST_OF_AGE), FARTHEST_OF_AGE) * deviation
            sums[age, 0] += 1.0
            sums[age, 1] += limited
            sums[age, 2] += limited * limited
            farthest = FARTHEST * math.sqrt(tau2)
            step = min(max(z - (mine[MEAN] if n > 0.0 else level), -farthest), farthest)
            share = max(1.0 / (n + 1.0), 1.0 / LONGEST)
            mine[MEAN] = (mine[MEAN] if n > 0.0 else level) + share * step
            mine[VARIANCE] = (1.0 - share) * (mine[VARIANCE] + share * step * step)
            mine[COUNT] = min(n + 1.0, LONGEST)


_NOT_NEGATIVE = [0.0, -LARGEST, 0.0]
_AGES = Entry((len(AGES) + 1, 3), _NOT_NEGATIVE)
_SCORES = {
    "scores": Entry(("k", 3), _NOT_NEGATIVE),
    "usual_scores": Entry((4,), [-LARGEST, POSITIVE, POSITIVE, POSITIVE]),
    "score_ages": _AGES,
    "new_score_ages": _AGES,
}


class OwnScores:
    """The usual scores of each entity, of entities of each age, and of all.

    An entity's statistics change with each record. What is shared changes in ``update`` alone.
    """

    def __init__(self) -> None:
        self._own = np.empty((0, 3))
        self._population = first_population()
        self._ages = np.zeros((len(AGES) + 1, 3))
        self._new = np.zeros_like(self._ages)
        self._units = age_units(self._ages)

    def reserve(self, room: int) -> None:
        """Make room for so many entities."""
        self._own = enlarged(self._own, room)

    def relate(
        self, score: FloatArray, slots: NDArray[np.int64], fresh: NDArray[np.bool_]
    ) -> FloatArray:
        """Return the scores (m,) of the next rows in units of their entities (m,)."""
        result = np.empty(len(score))
        relate(
            score, slots, fresh, self._own, self._population, self._units, self._new, result
        )  # fmt: skip
        return result

    def end_batch(self, *, learning: bool) -> None:
        """End a learning batch: learn the usual scores of each age."""
        if learning:
            self._ages = self._ages * np.exp(-self._new[:, :1] / AGE_MEMORY) + self._new
            self._units = age_units(self._ages)
        self._new = np.zeros_like(self._new)

    def update(self, some: NDArray[np.int64]) -> None:
        """Learn from some entities (k,) what entities are like."""
        self._population = estimate(self._own[some], self._population)

    def state(self, k: int) -> Arrays:
        """Return all that ``restore`` needs, of ``k`` entities, as arrays."""
        return {
            "entity_scores": self._own[:k],
            "entity_usual_scores": self._population,
            "entity_score_ages": self._ages,
            "entity_new_score_ages": self._new,
        }

    def restore(self, arrays: Arrays, k: int) -> None:
        """Restore a state of ``k`` entities; StateError if it cannot be one."""
        self._own, self._population, self._ages, self._new = read(arrays, _SCORES, "entity_", k=k)
        self._units = age_units(self._ages)


def age_units(ages: FloatArray) -> FloatArray:
    """Return mean and deviation (ages, 2) of the scores of each age, from their sums (ages, 3).

    Few scores of an age are taken together with those of the next one; without any scores, they
    are 0 and 1.
    """
    units = np.empty((len(ages), 2))
    n, total, squares = ages.sum(axis=0).tolist()
    mean = total / n if n > 0.0 else 0.0
    variance = max(squares / n - mean * mean, LEAST_VARIANCE) if n > 0.0 else 1.0
    for age in range(len(ages) - 1, -1, -1):
        n, total, squares = ages[age].tolist()
        older, weight = mean, n + OLDER_SCORES
        mean = (total + OLDER_SCORES * older) / weight
        around = squares - 2.0 * mean * total + n * mean * mean
        around += OLDER_SCORES * (variance + (older - mean) ** 2)
        variance = max(around / weight, LEAST_VARIANCE)
        units[age] = mean, math.sqrt(variance)
    return units


def first_population() -> FloatArray:
    """Return the units of all scores before any entity is known: those that they are in."""
    return np.array([0.0, MOST_SHRINKAGE, 1e9, 1.0])


def estimate(own: FloatArray, before: FloatArray) -> FloatArray:
    """Estimate what the scores of entities are like from the statistics (k, 3) of some of them."""
    some = own[own[:, COUNT] >= FEWEST_SCORES]
    if len(some) < FEWEST_ENTITIES:
        return before
    count, mean, variance = some.T
    weight = count / (count + 16.0)
    level = weighted_mean(mean, weight)
    freedom = VALUE * count[:, None]
    nu, tau2, _ = variance_prior(freedom * variance[:, None], freedom)
    between = weighted_mean((mean - level) ** 2 - variance / count, weight)
    within = weighted_mean(variance, weight)
    shrinkage = np.clip(within / max(float(between), 1e-9), LEAST_SHRINKAGE, MOST_SHRINKAGE)
    return np.array([level, shrinkage, max(nu[0], 1.0), tau2[0]])
