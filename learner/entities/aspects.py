"""How far each entity is from all of them: in level and spread of its fields, and in its kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

from .levels import B0, COUNT, M0, MEMORY, NU, SQUARES, TAU2
from .population import SMALLEST_VARIANCE

FloatArray = NDArray[np.float64]

FEWEST = 16.0
"""Values of a field from which on an entity's level and spread of it are compared; and records from
which on its weights of the kinds are."""


def deviations(
    mean: FloatArray,
    statistics: NDArray[np.float32],
    population: FloatArray,
    kinds: FloatArray,
    weight: FloatArray,
) -> FloatArray:
    """Return how far entities are from the others (k, 2 d + 1), in standard deviations of these.

    The levels of the d fields come first, then their spreads, then the kinds; 0 where too little is
    known. ``mean`` (k, d), ``statistics`` (k, d, 2) and ``population`` (5, d) are those of
    `levels`; ``kinds`` (k, K) are the entities' records of each kind, ``weight`` (K,) the weights
    of the kinds among all records.
    """
    count, squares = (statistics[:, :, at].astype(np.float64) for at in (COUNT, SQUARES))
    known = count >= FEWEST
    freedom = np.where(known, count - 1.0, FEWEST)
    nu, tau2 = population[NU], population[TAU2]
    variance = (nu * tau2 + squares) / (nu + freedom)
    noise = variance / np.minimum(freedom, population[MEMORY])
    level = (mean - population[M0]) / np.sqrt(population[B0] + noise)
    logarithm = np.log(np.maximum(squares / freedom, SMALLEST_VARIANCE) / tau2)
    # mean and variance of the logarithm of chi-square over its degrees of freedom; a series for
    # those of the entities, which are many
    bias = digamma(nu / 2.0) - np.log(nu / 2.0) + 1.0 / freedom
    chance = polygamma(1, nu / 2.0) + 2.0 / freedom + 2.0 / freedom**2
    spread = (logarithm + bias) / np.sqrt(chance)
    found = [np.where(known, level, 0.0), np.where(known, spread, 0.0)]
    return np.column_stack([*found, kinds_deviance(kinds, weight)])


def kinds_deviance(kinds: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the root (k,) of the deviance of the entities' kinds from those of all records."""
    total = kinds.sum(axis=1)
    share = kinds / np.maximum(total, 1.0)[:, None]
    usual = np.maximum(weight, 1e-6)
    ratio = np.where(share > 0.0, share, usual) / usual
    deviance = 2.0 * total * (share * np.log(ratio)).sum(axis=1)
    return np.where(total >= FEWEST, np.sqrt(np.maximum(deviance, 0.0)), 0.0)
