"""Kernels of Gaussians over all variables, several of them side by side.

Each has a whitening matrix W, the inverse of the lower Cholesky factor of its covariance:
y = W (x - mean) has independent N(0, 1) entries.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    SUMS,
    WIDTH,
    aligned_stack,
    choose,
    fma,
    load,
    padded,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import log_positive

LOG_2PI = math.log(2.0 * math.pi)

LEAST_PIVOT = 1e-9
"""Least square of a Cholesky factor's diagonal, where rounding leaves less."""


@kernel
def factorise(covariance: Array, whitening: Array, log_norm: Array) -> None:
    """Fill ``whitening`` (K, d, d) and the log-densities at the mean (K,) of covariances."""
    aligned_stack()
    d = covariance.shape[1]
    U, inverse = np.zeros((2, d, padded(max(d, 2))))
    column = np.empty(d)
    for k in range(len(covariance)):
        log_norm[k] = -0.5 * d * LOG_2PI
        for a in range(d):
            U[a, :a] = 0.0
            for b in range(a, d):
                U[a, b] = covariance[k, b, a]
            log_norm[k] -= log_positive(subtract_rows(U, a, column))
        invert_transpose(U, inverse, column)
        whitening[k] = inverse[:, :d]


@kernel
def subtract_rows(U: Array, a: int, column: Array) -> float:
    """Turn row ``a`` of a covariance into that of its factor U, U^T U; return the pivot.

    The rows above it are the factor's already. ``column`` (d,) is scratch.
    """
    column[:a] = U[:a, a]
    for c in range(a // WIDTH * WIDTH, U.shape[1], WIDTH):
        total = load(U, a, c)
        for b in range(a):
            total = fma(-column[b], load(U, b, c), total)
        store(U, a, c, total)
    pivot = math.sqrt(max(U[a, a], LEAST_PIVOT))
    U[a, a] = pivot
    scale = 1.0 / pivot
    for b in range(a + 1, U.shape[1]):
        U[a, b] *= scale
    return pivot


@kernel
def invert_transpose(U: Array, inverse: Array, column: Array) -> None:
    """Fill ``inverse``, lower triangular, with that of the transpose of ``U``.

    Both have a whole number of lanes in a row. ``column`` (d,) is scratch.
    """
    for a in range(len(U)):
        scale = 1.0 / U[a, a]
        column[:a] = U[:a, a]
        for b in range(0, a, WIDTH):
            total = spread(0.0)
            for c in range(b, a):
                total = fma(column[c], load(inverse, c, b), total)
            store(inverse, a, b, total * -scale)
        inverse[a, a] = scale


@kernel
def distances(
    Z: Array, mean: Array, whitening: Array, log_norm: Array, distance: Array, norm: Array
) -> None:
    """Fill ``distance`` and ``norm`` (K, m) for the columns of ``Z`` (d, m).

    Squared Mahalanobis distances, -1 where a value is missing, and log-densities at distance 0.
    """
    aligned_stack()
    K, d = mean.shape
    m = Z.shape[1]
    block, dx, result = np.zeros((d, WIDTH)), np.empty((d, WIDTH)), np.empty((1, WIDTH))
    for r in range(0, m, WIDTH):
        n = min(WIDTH, m - r)
        for v in range(d):
            for i in range(n):
                block[v, i] = Z[v, r + i]
        for k in range(K):
            for v in range(d):
                store(dx, v, 0, load(block, v, 0) - mean[k, v])
            total = spread(0.0)
            for a in range(0, d, SUMS):  # some entries at a time, as each waits for its last term
                e, f, g = min(a + 1, d - 1), min(a + 2, d - 1), min(a + 3, d - 1)
                one, two, three, four = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
                for b in range(min(a + SUMS, d)):  # beyond the diagonal W is 0
                    difference = load(dx, b, 0)
                    one = fma(whitening[k, a, b], difference, one)
                    two = fma(whitening[k, e, b], difference, two)
                    if SUMS == 4:
                        three = fma(whitening[k, f, b], difference, three)
                        four = fma(whitening[k, g, b], difference, four)
                total = fma(one, one, total)
                if a < e:
                    total = fma(two, two, total)
                if SUMS == 4 and e < f:
                    total = fma(three, three, total)
                if SUMS == 4 and f < g:
                    total = fma(four, four, total)
            store(result, 0, 0, choose(total == total, total, -1.0))
            for i in range(n):
                distance[k, r + i], norm[k, r + i] = result[0, i], log_norm[k]


@kernel
def at_widths(
    distance: Array, norm: Array, observed: Array, widths: Array, log_widths: Array, result: Array
) -> None:
    """Fill ``result`` (K + S, m): log-densities, then those of the last Gaussian at S more widths.

    ``distance`` and ``norm`` (K, m) are those that `distances` fills, ``observed`` (m,) the numbers
    of observed variables.
    """
    K, m = distance.shape
    for k in range(K):
        for r in range(m):
            result[k, r] = norm[k, r] - 0.5 * distance[k, r]
    for s in range(len(widths)):
        square = widths[s] * widths[s]
        for r in range(m):
            wide = norm[K - 1, r] - observed[r] * log_widths[s]
            result[K + s, r] = wide - 0.5 * distance[K - 1, r] / square


@kernel
def add_squares(Z: Array, sums: Array, squares: Array) -> None:
    """Add sums (d,) and sums of products (d, d), lower triangle, of complete columns (d, m)."""
    aligned_stack()
    d, m = Z.shape
    strip, result = np.zeros((m, WIDTH)), np.empty((2, WIDTH))
    for v in range(d):
        total = 0.0
        for r in range(m):
            total += Z[v, r]
        sums[v] += total
    for c in range(0, d, WIDTH):  # as many columns as lanes at a time, which fit into the cache
        for b in range(c, min(c + WIDTH, d)):
            for r in range(m):
                strip[r, b - c] = Z[b, r]
        for a in range(c, d, 2):
            other = min(a + 1, d - 1)  # two rows at a time take each value from memory once
            one, two = spread(0.0), spread(0.0)
            for r in range(m):
                values = load(strip, r, 0)
                one = fma(Z[a, r], values, one)
                two = fma(Z[other, r], values, two)
            store(result, 0, 0, one)
            store(result, 1, 0, two)
            for b in range(c, min(c + WIDTH, a + 1)):
                squares[a, b] += result[0, b - c]
            for b in range(c, min(c + WIDTH, other + 1)):
                if other > a:
                    squares[other, b] += result[1, b - c]


@kernel
def shrink(
    count: float, sums: Array, squares: Array, strengths: Array, least: float, covariance: Array
) -> None:
    """Fill lower triangles of ``covariance`` (K, d, d), drawn to the diagonal by ``strengths``.

    ``least`` is what a variance is at the least.
    """
    d = len(sums)
    for k in range(len(strengths)):
        scale = 1.0 / (count + strengths[k])
        for a in range(d):
            mean = sums[a] / count
            for b in range(a + 1):
                covariance[k, a, b] = (squares[a, b] - mean * sums[b]) * scale
            variance = (squares[a, a] - mean * sums[a]) / count + least
            covariance[k, a, a] += strengths[k] * variance * scale + least


@kernel
def shrink_to_pooled(
    count: Array,
    mean: Array,
    squares: Array,
    strength: float,
    least: float,
    covariance: Array,
) -> None:
    """Fill lower triangles of ``covariance`` (K, d, d), drawn to the pooled one by ``strength``.

    ``least`` is what a variance is at the least. Mean and covariance of n records are too narrow
    for new ones, whose squared distance is 1 + (d + 3) / (n - d - 2) times as large. So covariances
    are widened by this factor, with n + strength + d as the denominator: few records would make the
    other one negative.
    """
    K, d = mean.shape
    n, pooled = count.sum(), np.zeros((d, d))
    for k in range(K):
        for a in range(d):
            for b in range(a + 1):
                covariance[k, a, b] = squares[k, a, b] - count[k] * mean[k, a] * mean[k, b]
                pooled[a, b] += covariance[k, a, b]
    for a in range(d):
        pooled[a, a] += pooled[a, a] / n + least
    pooled *= strength / (n + 1.0)
    for k in range(K):
        known = count[k] + strength
        scale = (1.0 + (d + 3.0) / (known + d)) / known
        for a in range(d):
            for b in range(a + 1):
                covariance[k, a, b] = (covariance[k, a, b] + pooled[a, b]) * scale
            covariance[k, a, a] += least
