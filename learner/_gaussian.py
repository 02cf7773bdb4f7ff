"""Kernels of Gaussian leaves: densities, marginals and conditionals.

A multivariate leaf keeps its whitening matrix W, the inverse of the lower Cholesky factor of its
covariance: y = W (x - mean) has independent N(0, 1) entries.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel
from ._layout import Array
from ._math import fma

LOG_2PI = math.log(2.0 * math.pi)

NONE = -1
"""No entry."""


@kernel
def gaussian(x: float, mean: float, precision: float, log_norm: float) -> float:
    """Log-density of one variable; 0 if it is missing."""
    dx = x - mean
    return fma(-0.5 * precision * dx, dx, log_norm) if dx == dx else 0.0


@kernel
def evaluate_multivariate(
    i: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    values: Array,
    scratch: Array,
) -> None:
    """Multivariate Gaussian leaf; rows with missing values use the marginal Gaussian.

    ``scratch`` (> k, m) holds an entry of y and, below it, the distances from the mean.
    """
    k, scope, block = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    whitening = block + k * (k + 2)
    log_norm = nodes[i]["log_norm"]
    for a in range(k):
        variable, mean = scopes[scope + a], stats[block + a]
        for r in range(m):
            scratch[a + 1, r] = Z[variable, r] - mean
    for r in range(m):
        values[i, r] = log_norm
    for a in range(k):
        whiten(stats[whitening + a * k : whitening + a * k + a + 1], scratch, m)
        for r in range(m):
            values[i, r] = fma(-0.5 * scratch[0, r], scratch[0, r], values[i, r])
    for r in range(m):
        if values[i, r] != values[i, r]:
            values[i, r] = density_of_observed(i, nodes, stats, scratch[1 : k + 1, r])


@kernel
def whiten(factors: Array, scratch: Array, m: int) -> None:
    """Fill the first row of ``scratch`` with a combination of the rows below, four at a time."""
    y, dx, n = scratch[0], scratch[1:], len(factors)
    for r in range(m):
        y[r] = 0.0
    for b in range(0, n - 3, 4):
        f0, f1, f2, f3 = factors[b], factors[b + 1], factors[b + 2], factors[b + 3]
        for r in range(m):
            first = fma(f1, dx[b + 1, r], fma(f0, dx[b, r], y[r]))
            y[r] = fma(f3, dx[b + 3, r], fma(f2, dx[b + 2, r], first))
    for b in range(n // 4 * 4, n):
        factor = factors[b]
        for r in range(m):
            y[r] = fma(factor, dx[b, r], y[r])


@kernel
def density_of_observed(i: int, nodes: Array, stats: Array, dx: Array) -> float:
    """Log-density of the observed part of ``dx`` (k,), distances from a leaf's mean."""
    n_missing = 0
    for b in range(len(dx)):
        n_missing += dx[b] != dx[b]
    if n_missing == len(dx):
        return 0.0
    return conditional(i, NONE, nodes, stats, dx, n_missing)[0]


@kernel
def conditional(
    i: int, a: int, nodes: Array, stats: Array, dx: Array, n_missing: int
) -> tuple[float, float, float]:
    """Log-density of what is observed but entry ``a``, and what it says about ``a``.

    That is the mean's distance from the leaf's mean, and the variance. Whatever value the
    missing entries take, y moves along their columns of the whitening matrix W: what is left of
    y across those directions is the observed entries' own distance.
    """
    k = len(dx)
    whitening = nodes[i]["stats"] + k * (k + 2)
    W = stats[whitening : whitening + k * k].reshape((k, k))
    y, directions = np.zeros(k), np.empty((n_missing + 1, k))
    density, n, length, along = nodes[i]["log_norm"], 0, 1.0, 0.0
    for b in range(k):
        if dx[b] == dx[b] and b != a:
            for c in range(b, k):
                y[c] += W[c, b] * dx[b]
    for b in range(k):
        if dx[b] != dx[b] and b != a:
            length, along = project_out(W, b, directions, n, y)
            density += 0.5 * LOG_2PI - math.log(length)
            n += 1
    if a != NONE:
        length, along = project_out(W, a, directions, n, y)
        density += 0.5 * LOG_2PI - math.log(length)
    for c in range(k):
        density -= 0.5 * y[c] * y[c]
    return density, -along / length, 1.0 / (length * length)


@kernel
def project_out(W: Array, b: int, directions: Array, n: int, y: Array) -> tuple[float, float]:
    """Remove from ``y`` its part along column ``b`` of ``W``, less the ``n`` directions so far.

    Adds that direction; returns the length of the column across the others, and of the part.
    """
    v = directions[n]
    for c in range(len(y)):
        v[c] = W[c, b]
    for other in range(n):
        subtract_part(v, directions[other])
    length = 0.0
    for c in range(len(y)):
        length += v[c] * v[c]
    length = math.sqrt(length)
    for c in range(len(y)):
        v[c] /= length
    return length, subtract_part(y, v)


@kernel
def subtract_part(y: Array, direction: Array) -> float:
    """Make ``y`` orthogonal to a direction of length 1; return the length of what is removed."""
    along = 0.0
    for c in range(len(y)):
        along += y[c] * direction[c]
    for c in range(len(y)):
        y[c] -= along * direction[c]
    return along
