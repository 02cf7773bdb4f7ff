"""Predictive mixtures: all Gaussians that a density has for a missing variable, and quantiles.

Given the observed variables of a row, a missing one has a mixture of Gaussians. For its mean and
variance, `mixtures` sums them up; its quantiles need each of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from faust_oslrau.learner.vector.compiler import Array, kernel

FloatArray = NDArray[np.float64]

NEGLIGIBLE = 1e-8
"""Weight up to which a component is left out: the many of a network would cost most of the time."""

STEPS = 200
"""More than bisection needs from the widest component to the narrowest one."""

TOLERANCE = 1e-10
"""Error of a quantile, in deviations of the component with the largest weight."""

ROWS = 128
"""Rows whose components are held at a time."""

SQRT_2PI = math.sqrt(2.0 * math.pi)


class Components(NamedTuple):
    """Gaussians of each of d variables in each of m rows.

    Attributes
    ----------
    n
        Their numbers (d, m).
    weight, mean, deviation
        Their parameters (d, m, K), of which the first ``n`` ones are set.
    """

    n: Array
    weight: Array
    mean: Array
    deviation: Array


def new_components(d: int, m: int, most: int) -> Components:
    """Return room for up to ``most`` components of each variable in each row."""
    return Components(np.zeros((d, m), np.int64), *(np.empty((d, m, most)) for _ in range(3)))


@kernel
def append(
    v: int, r: int, weight: float, mean: float, variance: float, components: Components
) -> None:
    """Add a Gaussian of variable ``v`` in row ``r``, unless its weight is negligible."""
    if weight <= NEGLIGIBLE:
        return
    n = components.n[v, r]
    components.weight[v, r, n] = weight
    components.mean[v, r, n] = mean
    components.deviation[v, r, n] = math.sqrt(variance)
    components.n[v, r] = n + 1


def summaries(
    X: FloatArray, components: Components, levels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return means (m, d) and quantiles (q, m, d) of the missing values of rows ``X`` (m, d).

    At ``levels`` (q,) in (0, 1). An observed variable is its value.
    """
    mean, quantiles = X.copy(), np.tile(X, (len(levels), 1, 1))
    summarise(X, components, levels, ndtri(levels), mean, quantiles)
    return mean, quantiles


@kernel
def summarise(
    X: Array, components: Components, levels: Array, scores: Array, mean: Array, quantiles: Array
) -> None:
    """Fill in ``mean`` (m, d) and ``quantiles`` (q, m, d) where ``X`` (m, d) is missing.

    ``scores`` (q,) are the quantiles of the standard Gaussian at ``levels``.
    """
    for r in range(X.shape[0]):
        for v in range(X.shape[1]):
            if X[r, v] == X[r, v]:
                continue
            n = components.n[v, r]
            weight, centre = components.weight[v, r, :n], components.mean[v, r, :n]
            deviation = components.deviation[v, r, :n]
            total, first = 0.0, 0.0
            for k in range(n):
                total += weight[k]
                first += weight[k] * centre[k]
            mean[r, v] = first / total
            for q in range(len(levels)):
                quantiles[q, r, v] = quantile(
                    weight, centre, deviation, levels[q] * total, scores[q]
                )


@kernel
def quantile(weight: Array, mean: Array, deviation: Array, mass: float, score: float) -> float:
    """Return where so much mass of a mixture of Gaussians (K,) lies below, by Newton's method.

    A step that leaves the bracket, or is not half as long as the one before, is a bisection. The
    bracket begins with the components' own quantiles, ``score`` deviations from their means.
    """
    low, high, x, total, largest = np.inf, -np.inf, 0.0, 0.0, 0
    for k in range(len(weight)):
        own = mean[k] + score * deviation[k]
        low, high = min(low, own), max(high, own)
        x += weight[k] * own
        total += weight[k]
        if weight[k] > weight[largest]:
            largest = k
    x /= total
    if not low < high:  # a single component, or a variable that was never observed
        return x
    step, tolerance = high - low, TOLERANCE * deviation[largest]
    for _ in range(STEPS):
        below, density = mass_below(x, weight, mean, deviation)
        if below < mass:
            low = x
        else:
            high = x
        following = x - (below - mass) / density
        near = low < following < high and abs(following - x) < 0.5 * abs(step)
        if not near:
            following = 0.5 * (low + high)
        step = following - x
        x = following
        if abs(step) <= tolerance:
            break
    return x


@kernel
def mass_below(x: float, weight: Array, mean: Array, deviation: Array) -> tuple[float, float]:
    """Return the mass of a mixture of Gaussians (K,) below ``x``, and its density there."""
    below, density = 0.0, 0.0
    for k in range(len(weight)):
        z = (x - mean[k]) / deviation[k]
        below += 0.5 * weight[k] * math.erfc(-z / math.sqrt(2.0))
        density += weight[k] * math.exp(-0.5 * z * z) / (deviation[k] * SQRT_2PI)
    return below, density
