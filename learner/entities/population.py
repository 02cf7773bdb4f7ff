"""What entities are like in each field, by empirical Bayes.

How fast an entity's own values count follows from how much entities differ, and how much the
variances of entities differ says how many records it takes to know one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask

from .levels import B0, COUNT, LONGEST, M0, MEMORY, NU, SQUARES, TAU2

YOUNG = 4096
"""Records up to which a stream is young. What entities are like changes quickly, so it is estimated
at each boundary, and later whenever as many have come; and nothing is said of entities yet, as all
are new, and none is known well."""

SAMPLED = 1024
"""Entities that tell what all are like at the most: their errors are then a few per cent."""

SMALLEST_VARIANCE = 1e-12
"""Smallest variance of an entity, in units of the stream."""

FEWEST_FREEDOM, MOST_FREEDOM = 0.3, 200.0
"""Degrees of freedom of the prior of variances: from entities whose deviations differ by factors
of thousands to those whose deviations hardly differ."""

FARTHEST_LEVEL = 8.0
"""Levels further from the median than so many deviations (by the median absolute one) count as
less far: one broken entity must not change what is expected of all."""


def first_population(d: int) -> FloatArray:
    """Return what entities are like before any is known, in units of the stream.

    Half of the variance of the stream is within entities, half between them.
    """
    population = np.ones((5, d))
    population[M0], population[B0], population[TAU2] = 0.0, 0.5, 0.5
    population[NU], population[MEMORY] = 4.0, LONGEST
    return population


def sampled(k: int) -> IntArray:
    """Return the slots of some of ``k`` entities, which tell what all are like."""
    n = min(k, SAMPLED)
    return np.arange(n) * k // max(n, 1)


def estimate(mean: FloatArray, statistics: NDArray[np.float32], before: FloatArray) -> FloatArray:
    """Estimate what entities are like from means (k, d) and statistics (k, d, 2) of some of them.

    Returns a new population (5, d); fields that too few entities have seen keep the one ``before``.
    """
    population = before.copy()
    count, squares = (statistics[:, :, at].astype(np.float64) for at in (COUNT, SQUARES))
    freedom = np.maximum(count - 1.0, 0.0)
    known = np.count_nonzero(freedom > 0.0, axis=0) >= 2
    if not known.any():
        return population
    nu, tau2 = variance_prior(squares, freedom)
    variance = (nu * tau2 + squares) / (nu + freedom)
    seen = count > 0.0
    noise = variance / np.where(seen, np.minimum(count, before[MEMORY]), 1.0)
    m0, b0 = level_prior(mean, noise, seen, before[B0], tau2)
    for row, found in ((NU, nu), (TAU2, tau2), (M0, m0), (B0, b0)):
        population[row, known] = found[known]
    return population


def variance_prior(squares: FloatArray, freedom: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return nu and tau2 (d,) of a scaled inverse chi-square prior of variances.

    By the moments of their logarithms; ``squares`` (k, d) are sums over ``freedom`` (k, d).
    """
    half = np.maximum(freedom, 1.0) / 2.0
    noise = trigamma(half)
    weight = np.where(freedom > 0.0, 1.0 / (noise + 0.5), 0.0)
    logarithm = np.log(np.maximum(squares / (2.0 * half), SMALLEST_VARIANCE))
    logarithm += np.log(half) - digamma(half)
    centre = weighted_mean(logarithm, weight)
    spread = np.maximum(weighted_mean((logarithm - centre) ** 2 - noise, weight), 0.01)
    nu = np.clip(2.0 * inverse_trigamma(spread), FEWEST_FREEDOM, MOST_FREEDOM)
    tau2 = np.exp(centre + digamma(nu / 2.0) - np.log(nu / 2.0))
    return nu, np.maximum(tau2, SMALLEST_VARIANCE)


def level_prior(
    mean: FloatArray, noise: FloatArray, seen: Mask, b0: FloatArray, tau2: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (d,) of the levels of entities, as random effects.

    ``mean`` (k, d) are the means of the entities that were ``seen`` (k, d), ``noise`` (k, d) their
    squared errors. Entities weigh by how well their level is known, with the variance ``b0`` (d,)
    of the levels as it was estimated before.
    """
    middle = medians(mean, seen)
    deviation = 1.48 * medians(np.abs(mean - middle), seen)
    far = FARTHEST_LEVEL * np.where(deviation > 0.0, deviation, np.inf)
    level = np.clip(mean, middle - far, middle + far)
    k = np.count_nonzero(seen, axis=0)
    bessel = k / np.maximum(k - 1.0, 1.0)
    weight = np.where(seen, 1.0 / (b0 + noise), 0.0)
    m0, square = weighted_mean(level, weight), weight**2
    entities = square.sum(axis=0) / np.maximum(square.max(axis=0), 1e-300)
    between = np.maximum(weighted_mean((level - m0) ** 2 * bessel - noise, square), 0.0)
    guess = 0.02 * (between + tau2)
    return m0, (between * entities + guess) / (entities + 1.0)


def weighted_mean(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the weighted mean (d,) of values (k, d)."""
    return np.asarray((values * weight).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300))


def medians(values: FloatArray, seen: Mask) -> FloatArray:
    """Return the median (d,) of the values (k, d) that were seen, 0 where none was."""
    ordered = np.sort(np.where(seen, values, np.inf), axis=0)
    k = np.count_nonzero(seen, axis=0)
    return np.where(k > 0, ordered[np.maximum(k - 1, 0) // 2, np.arange(values.shape[1])], 0.0)


def trigamma(x: FloatArray) -> FloatArray:
    """Return the variance of the logarithm of a gamma variable of shape ``x`` >= 0.5.

    Four steps of the recurrence, then the asymptotic series: an error below 1e-6, and far faster
    than the function that is exact everywhere.
    """
    y = x + 4.0
    series = 1.0 / y + 0.5 / y**2 + 1.0 / (6.0 * y**3) - 1.0 / (30.0 * y**5)
    return np.asarray(series + sum((x + step) ** -2.0 for step in range(4)), np.float64)


def inverse_trigamma(y: FloatArray) -> FloatArray:
    """Return x > 0 with trigamma(x) = y, by Newton's method (Smyth 2004, appendix)."""
    x = 0.5 + 1.0 / y
    for _ in range(8):
        found = polygamma(1, x)
        x = np.maximum(x + found * (1.0 - found / y) / polygamma(2, x), 1e-3)
    return np.asarray(x, np.float64)
