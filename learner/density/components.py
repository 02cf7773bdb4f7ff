"""Predictive mixtures: all Gaussians that a density has for a missing variable, and quantiles.

Given the observed variables of a row, a missing one has a mixture of Gaussians. For its mean and
variance, `mixtures` sums them up; its quantiles need each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    absolute,
    aligned_stack,
    choose,
    fma,
    load,
    padded,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import gaussian_tail, larger, smaller

NEGLIGIBLE = 1e-6
"""Weight up to which a component is left out: the many of a network would cost most of the time.
Quantiles at 1 % move by some 1e-5 deviations."""

STEPS = 200
"""More than bisection needs from the widest component to the narrowest one."""

NEAR = 3e-4
"""Error of the mass beyond a quantile, as a share of it, from which one step of Halley's method is
the last one: the error after it is about the cube."""

ROWS = 128
"""Rows whose components are held at a time."""

WEIGHT, MEAN, DEVIATION, STEEPNESS = range(4)
"""Parameters of a component; the steepness, 1 / deviation, is worked out for quantiles."""

SQRT_2PI = math.sqrt(2.0 * math.pi)


class Components(NamedTuple):
    """Gaussians of each of d variables in each of m rows.

    Attributes
    ----------
    n
        Their numbers (m, d).
    parameters
        Weights, means and deviations (m, d, K, 3), of which the first ``n`` ones are set.
    """

    n: Array
    parameters: Array


def new_components(d: int, m: int, most: int) -> Components:
    """Return room for up to ``most`` components of each variable in each row."""
    return Components(np.zeros((m, d), np.int64), np.empty((m, d, most, 3)))


@kernel
def append(
    v: int, r: int, weight: float, mean: float, deviation: float, components: Components
) -> None:
    """Add a Gaussian of variable ``v`` in row ``r``, unless its weight is negligible."""
    if weight <= NEGLIGIBLE:
        return
    n = components.n[r, v]
    place = components.parameters[r, v, n]
    place[WEIGHT], place[MEAN], place[DEVIATION] = weight, mean, deviation
    components.n[r, v] = n + 1


@kernel
def weigh(share: Array, components: Components) -> None:
    """Multiply the weights of each row's components by its ``share`` (m,)."""
    m, d = components.n.shape
    for r in range(m):
        for v in range(d):
            for k in range(components.n[r, v]):
                components.parameters[r, v, k, WEIGHT] *= share[r]


def conditional_quantiles(
    X: FloatArray, levels: FloatArray, predictive: Callable[[slice], Components]
) -> tuple[FloatArray, FloatArray]:
    """Return means (m, d) and quantiles (q, m, d) of the missing values of rows ``X`` (m, d).

    At ``levels`` (q,) in (0, 1). An observed variable is its value. ``predictive`` returns the
    mixtures of some of the rows.
    """
    mean, quantiles, scores = np.empty(X.shape), np.empty((len(levels), *X.shape)), ndtri(levels)
    for start in range(0, len(X), ROWS):
        at = slice(start, start + ROWS)
        rows = X[at]
        found = rows.copy(), np.tile(rows, (len(levels), 1, 1))
        summarise(rows, predictive(at), levels, scores, *found)
        mean[at], quantiles[:, at] = found
    return mean, quantiles


@kernel
def summarise(
    X: Array, components: Components, levels: Array, scores: Array, mean: Array, quantiles: Array
) -> None:
    """Fill in ``mean`` (m, d) and ``quantiles`` (q, m, d) where ``X`` (m, d) is missing.

    ``scores`` (q,) are the quantiles of the standard Gaussian at ``levels``.
    """
    aligned_stack()
    mixture = np.empty((4, padded(max(components.parameters.shape[2], 2))))
    sums = np.empty((3, WIDTH))
    for r in range(X.shape[0]):
        for v in range(X.shape[1]):
            if X[r, v] == X[r, v]:
                continue
            n = components.n[r, v]
            total, first = gather(components.parameters[r, v, :n], mixture)
            mean[r, v] = first / total
            for q in range(len(levels)):
                quantiles[q, r, v] = quantile(mixture, n, levels[q], total, scores[q], sums)


@kernel
def gather(parameters: Array, mixture: Array) -> tuple[float, float]:
    """Fill ``mixture`` (4, .) with ``parameters`` (n, 3); return its mass, and weighted mean.

    The last lanes are filled up with the first component, of weight 0.
    """
    n, total, first = len(parameters), 0.0, 0.0
    for k in range(n):
        mixture[WEIGHT, k], mixture[MEAN, k] = parameters[k, WEIGHT], parameters[k, MEAN]
        mixture[DEVIATION, k] = parameters[k, DEVIATION]
        total += parameters[k, WEIGHT]
        first += parameters[k, WEIGHT] * parameters[k, MEAN]
    for k in range(n, (n + WIDTH - 1) // WIDTH * WIDTH):
        mixture[WEIGHT, k], mixture[MEAN, k] = 0.0, mixture[MEAN, 0]
        mixture[DEVIATION, k] = mixture[DEVIATION, 0]
    for k in range(0, n, WIDTH):
        store(mixture, STEEPNESS, k, 1.0 / load(mixture, DEVIATION, k))
    return total, first


@kernel
def quantile(
    mixture: Array, n: int, level: float, total: float, score: float, sums: Array
) -> float:
    """Return where a share ``level`` of a mixture of Gaussians lies below, by Halley's method.

    A step that leaves the bracket, or is not half as long as the one before, is a bisection. The
    bracket begins with the components' own quantiles, ``score`` deviations from their means, and
    the first step is from the mean of these. ``total`` is the mass of all ``n``; ``sums``
    (3, WIDTH) is scratch.
    """
    low, high, x = own_quantiles(n, score, mixture, sums)
    x /= total
    if not low < high:  # a single component, or a variable that was never observed
        return x
    step, enough = high - low, NEAR * min(level, 1.0 - level) * total
    for _ in range(STEPS):
        below, density, slope = mass_below(x, n, mixture, sums)
        off = below - level * total
        if off < 0.0:
            low = x
        else:
            high = x
        newton = off / density
        bend = min(max(0.5 * newton * slope / density, -0.5), 0.5)
        following = x - newton / (1.0 - bend)
        near = low < following < high and abs(following - x) < 0.5 * abs(step)
        if not near:
            following = 0.5 * (low + high)
        step = following - x
        x = following
        if (near and abs(off) <= enough) or step == 0.0:
            break
    return x


@kernel
def own_quantiles(n: int, score: float, mixture: Array, sums: Array) -> tuple[float, float, float]:
    """Return the lowest and the highest quantile of ``n`` components, and the weighted sum."""
    lowest, highest, total = spread(np.inf), spread(-np.inf), spread(0.0)
    for k in range(0, n, WIDTH):
        own = fma(load(mixture, DEVIATION, k), score, load(mixture, MEAN, k))
        lowest, highest = smaller(lowest, own), larger(highest, own)
        total = fma(load(mixture, WEIGHT, k), own, total)
    store(sums, 0, 0, lowest)
    store(sums, 1, 0, highest)
    store(sums, 2, 0, total)
    return float(sums[0].min()), float(sums[1].max()), float(sums[2].sum())


@kernel
def mass_below(x: float, n: int, mixture: Array, sums: Array) -> tuple[float, float, float]:
    """Return the mass of ``n`` Gaussians below ``x``; their density there, and its slope."""
    below, density, slope = spread(0.0), spread(0.0), spread(0.0)
    for k in range(0, n, WIDTH):
        steepness, weight = load(mixture, STEEPNESS, k), load(mixture, WEIGHT, k)
        z = (x - load(mixture, MEAN, k)) * steepness
        tail, height = gaussian_tail(absolute(z))
        below = fma(weight, choose(z > 0.0, 1.0 - tail, tail), below)
        own = weight * steepness * height
        density = density + own
        slope = fma(own * steepness, -1.0 * z, slope)
    store(sums, 0, 0, below)
    store(sums, 1, 0, density)
    store(sums, 2, 0, slope)
    return float(sums[0].sum()), sums[1].sum() / SQRT_2PI, sums[2].sum() / SQRT_2PI
