"""Scores in units of the entity's own: how unusual a record is for its entity.

Entities of a kind that the network describes less well, or that vary by nature, have lower scores
all the time. So a score counts by its distance from the entity's mean score in its own deviations,
both shrunk to those of all entities.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.vector.compiler import Array, kernel

from .population import variance_prior, weighted_mean

FloatArray = NDArray[np.float64]

COUNT, MEAN, VARIANCE = range(3)
"""Statistics of an entity's scores."""

LEVEL, SHRINKAGE, NU, TAU2 = range(4)
"""What entities are like: their mean score, the records that it stands for in an entity's own, and
the prior of their variances."""

LONGEST = 250.0
"""Records that the statistics of an entity's scores remember."""

FARTHEST = 20.0
"""Usual deviations by which one score may lie off its entity's mean at the most."""

VALUE = 0.25
"""What a score says about the variance, as a share of what a Gaussian number says: low scores are
heavy-tailed."""

FEWEST_SCORES = 4.0
"""Scores of an entity from which on it tells what entities are like."""

FEWEST_ENTITIES = 5
"""Such entities from which on there are own units."""

LEAST_SHRINKAGE, MOST_SHRINKAGE = 2.0, 1e4


@kernel
def relate(
    score: Array, slots: Array, fresh: Array, own: Array, population: Array, result: Array
) -> None:
    """Fill ``result`` (m,) with scores (m,) in units of their entities, and learn them one by one.

    ``own`` (slots, 3) are the statistics, ``population`` (4,) is what entities are like.
    """
    level, shrinkage = population[LEVEL], population[SHRINKAGE]
    nu, tau2 = population[NU], population[TAU2]
    for r in range(len(score)):
        mine = own[slots[r]]
        if fresh[r]:
            mine[:] = 0.0
        n = mine[COUNT]
        middle = (shrinkage * level + n * mine[MEAN]) / (shrinkage + n)
        variance = (nu * tau2 + VALUE * n * mine[VARIANCE]) / (nu + VALUE * n)
        result[r] = (score[r] - middle) / math.sqrt(variance)
        if score[r] == score[r]:
            farthest = FARTHEST * math.sqrt(tau2)
            step = min(max(score[r] - (mine[MEAN] if n > 0.0 else level), -farthest), farthest)
            share = max(1.0 / (n + 1.0), 1.0 / LONGEST)
            mine[MEAN] = (mine[MEAN] if n > 0.0 else level) + share * step
            mine[VARIANCE] = (1.0 - share) * (mine[VARIANCE] + share * step * step)
            mine[COUNT] = min(n + 1.0, LONGEST)


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
