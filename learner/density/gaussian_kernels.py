"""Kernels of Gaussians over all variables, several of them side by side.

Each has a whitening matrix W, the inverse of the lower Cholesky factor of its covariance:
y = W (x - mean) has independent N(0, 1) entries.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.blocks import copy_columns
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    SUMS,
    WIDTH,
    Value,
    aligned_stack,
    choose,
    fma,
    load,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import log_positive

LOG_2PI = math.log(2.0 * math.pi)

GAUSSIAN_ENTROPY = 0.5 * (LOG_2PI + 1.0)
"""Entropy of N(0, 1) in nats."""

TYPICAL = 0.6745
"""Median distance of a standard Gaussian from its mean."""

LEAST_VARIANCE = 2e-5
"""Of a variable, in standardised units: what a value that comes again and again is taken to be."""

LEAST_PIVOT = 1e-9
"""Least square of a Cholesky factor's diagonal, where rounding leaves less."""

LARGEST = 1e6
"""Largest entry of W. None is near it with variances of `LEAST_VARIANCE` in all directions."""


@kernel
def factorise(covariance: Array, whitening: Array, log_norm: Array) -> None:
    """Fill ``whitening`` (K, d, d) and the log-densities at the mean (K,) of covariances.

    Where rounding has left no positive definite matrix, as of values that lie millions of
    deviations from 0, the variances alone count.
    """
    d = covariance.shape[1]
    for k in range(len(covariance)):
        log_norm[k], _ = invert_factor(covariance[k], LEAST_PIVOT, whitening[k])
        if not is_bounded(whitening[k]):
            log_norm[k] = -0.5 * d * LOG_2PI + whiten_each(covariance[k], whitening[k])


@kernel
def invert_factor(covariance: Array, least: float, W: Array) -> tuple[float, bool]:
    """Fill the whitening matrix ``W`` (d, d) of a covariance, given by its lower triangle.

    Squares of the Cholesky factor's diagonal are ``least`` at the least. Returns the log-density at
    the mean, and whether all squares are larger. As many columns as lanes at a time: they fit into
    the cache.
    """
    aligned_stack()
    d = len(covariance)
    factor, pivot, strip = np.zeros((d, d)), np.empty(d), np.zeros((d, WIDTH))
    for c in range(0, d, WIDTH):
        for a in range(c, min(c + WIDTH, d)):
            for b in range(a + 1):
                strip[b, a - c] = covariance[a, b]
        add_rows_of_factor(factor, pivot, c, least, strip)
    log_norm, regular = -0.5 * d * LOG_2PI, True
    for a in range(d):
        log_norm -= log_positive(pivot[a])
        regular = regular and pivot[a] > math.sqrt(least)
    for c in range(0, d, WIDTH):
        invert_columns(factor, pivot, c, strip, W)
    return log_norm, regular


@kernel
def is_bounded(W: Array) -> bool:
    """Whether no entry is too large for a covariance, or no number."""
    for row in W:
        for entry in row:
            if not abs(entry) <= LARGEST:
                return False
    return True


@kernel
def whiten_each(covariance: Array, W: Array) -> float:
    """Fill ``W`` (d, d) as if variables were independent; return the log of its determinant."""
    W[:] = 0.0
    total = 0.0
    for a in range(len(W)):
        variance = max(covariance[a, a], LEAST_VARIANCE)
        W[a, a] = 1.0 / math.sqrt(variance)
        total -= 0.5 * log_positive(variance)
    return total


@kernel
def add_rows_of_factor(factor: Array, pivot: Array, c: int, least: float, strip: Array) -> None:
    """Extend a Cholesky factor by rows from ``c`` on, as many as lanes.

    ``strip`` (d, WIDTH) has these rows of the covariance as columns. ``pivot`` (d,) takes the
    diagonal of the factor, and ``factor`` (d, d) minus what is below it.
    """
    end = min(c + WIDTH, len(pivot))
    substitute(factor, pivot, 0, c, strip)
    for a in range(c, end):
        for b in range(c):
            factor[a, b] = -strip[b, a - c]
    subtract_products(factor, 0, c, c, end, strip)
    for a in range(c, end):
        subtract_products(factor, c, a, a, a + 1, strip)
        pivot[a] = math.sqrt(max(strip[a, a - c], least))
        scale = 1.0 / pivot[a]
        for b in range(a + 1, end):
            strip[a, b - c] *= scale
            factor[b, a] = -strip[a, b - c]


@kernel
def invert_columns(factor: Array, pivot: Array, c: int, strip: Array, inverse: Array) -> None:
    """Fill columns of the inverse of a Cholesky factor from ``c`` on, as many as lanes."""
    d = len(pivot)
    end = min(c + WIDTH, d)
    strip[c:] = 0.0
    for a in range(c, end):
        strip[a, a - c] = 1.0
    substitute(factor, pivot, c, d, strip)
    inverse[:c, c:end] = 0.0
    for a in range(c, d):
        for b in range(c, end):
            inverse[a, b] = strip[a, b - c]


@kernel
def substitute(factor: Array, pivot: Array, start: int, stop: int, strip: Array) -> None:
    """Solve for rows ``start`` to ``stop`` of ``strip``, which are the right-hand sides."""
    for a in range(start, stop, 2):
        end = min(a + 2, stop)
        subtract_products(factor, start, a, a, end, strip)
        for b in range(a, end):
            subtract_products(factor, a, b, b, b + 1, strip)
            store(strip, b, 0, load(strip, b, 0) * (1.0 / pivot[b]))


@kernel
def subtract_products(
    factor: Array, start: int, stop: int, first: int, last: int, strip: Array
) -> None:
    """Take what rows ``start`` to ``stop`` of ``strip`` explain from rows ``first`` to ``last``."""
    for a in range(first, last, 2):  # two rows at a time take each value from memory once
        other = min(a + 1, last - 1)
        one, two = load(strip, a, 0), load(strip, other, 0)
        for b in range(start, stop):
            values = load(strip, b, 0)
            one = fma(factor[a, b], values, one)
            two = fma(factor[other, b], values, two)
        store(strip, a, 0, one)
        store(strip, other, 0, two)


@kernel
def whiten(W: Array, lanes: Array) -> Value:
    """Fill y with W times the distances from the mean; return its squared length.

    ``lanes`` (>= 2 d, WIDTH) has the distances in its first d rows, and takes y in the next ones.
    """
    aligned_stack()
    d, total = len(W), spread(0.0)
    together = d // SUMS * SUMS
    for a in range(0, together, SUMS):  # some entries at a time, as each waits for its last term
        one, two, three, four = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for b in range(a + SUMS):  # beyond the diagonal W is 0
            difference = load(lanes, b, 0)
            one = fma(W[a, b], difference, one)
            two = fma(W[a + 1, b], difference, two)
            if SUMS == 4:
                three = fma(W[a + 2, b], difference, three)
                four = fma(W[a + 3, b], difference, four)
        store(lanes, d + a, 0, one)
        store(lanes, d + a + 1, 0, two)
        total = fma(two, two, fma(one, one, total))
        if SUMS == 4:
            store(lanes, d + a + 2, 0, three)
            store(lanes, d + a + 3, 0, four)
            total = fma(four, four, fma(three, three, total))
    for a in range(together, d):
        one = spread(0.0)
        for b in range(a + 1):
            one = fma(W[a, b], load(lanes, b, 0), one)
        store(lanes, d + a, 0, one)
        total = fma(one, one, total)
    return total


@kernel
def distances(
    Z: Array, mean: Array, whitening: Array, log_norm: Array, distance: Array, norm: Array
) -> bool:
    """Fill ``distance`` and ``norm`` (K, m) for the columns of ``Z`` (d, m).

    Squared Mahalanobis distances, -1 where a value is missing, and log-densities at distance 0.
    Returns whether no value is missing.
    """
    aligned_stack()
    complete = True
    K, d = mean.shape
    m = Z.shape[1]
    block, lanes, result = np.zeros((d, WIDTH)), np.empty((2 * d, WIDTH)), np.empty((1, WIDTH))
    for r in range(0, m, WIDTH):
        n = min(WIDTH, m - r)
        copy_columns(Z, r, n, block)
        for k in range(K):
            for v in range(d):
                store(lanes, v, 0, load(block, v, 0) - mean[k, v])
            total = whiten(whitening[k], lanes)
            store(result, 0, 0, choose(total == total, total, -1.0))
            for i in range(n):
                distance[k, r + i], norm[k, r + i] = result[0, i], log_norm[k]
                complete &= result[0, i] >= 0.0
    return complete


@kernel
def shrink_to_pooled(
    count: Array, mean: Array, squares: Array, strength: float, covariance: Array
) -> None:
    """Fill lower triangles of ``covariance`` (K, d, d), drawn to the pooled one by ``strength``.

    Mean and covariance of n records are too narrow for new ones, whose squared distance is
    1 + (d + 3) / (n - d - 2) times as large. So covariances are widened by this factor, with
    n + strength + d as the denominator: few records would make the other one negative.
    """
    K, d = mean.shape
    n, pooled = count.sum(), np.zeros((d, d))
    for k in range(K):
        for a in range(d):
            for b in range(a + 1):
                covariance[k, a, b] = squares[k, a, b] - count[k] * mean[k, a] * mean[k, b]
                pooled[a, b] += covariance[k, a, b]
    for a in range(d):
        pooled[a, a] += pooled[a, a] / n + LEAST_VARIANCE
    pooled *= strength / (n + 1.0)
    for k in range(K):
        known = count[k] + strength
        scale = (1.0 + (d + 3.0) / (known + d)) / known
        for a in range(d):
            for b in range(a + 1):
                covariance[k, a, b] = (covariance[k, a, b] + pooled[a, b]) * scale
            covariance[k, a, a] += LEAST_VARIANCE
