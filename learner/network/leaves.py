"""Gaussian leaves: their log-densities, and the constants that these need.

A multivariate leaf stores its whitening matrix W, the inverse of the lower Cholesky factor of its
covariance: y = W (x - mean) has independent N(0, 1) entries.
"""

from __future__ import annotations

import math

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
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

from .layout import moments_length

LOG_2PI = math.log(2.0 * math.pi)

SMALLEST_VARIANCE = 1e-30
"""Keeps densities finite where a leaf without a floor has seen only one value."""

SINGULAR_RIDGE = 1e-4
"""Added for good to the diagonal of a singular leaf covariance (authors' implementation)."""

SINGULAR_RATIO = 2.2e-10
"""A pivot below this share of the largest variance counts as zero (a million roundings)."""


@kernel
def gaussian(x: Value, mean: float, precision: float, log_norm: float) -> Value:
    """Return the log-density of one variable, 0 if it is missing."""
    dx = x - mean
    return choose(x == x, fma(-0.5 * precision * dx, dx, log_norm), 0.0)


@kernel
def evaluate_leaf(i: int, row: int, nodes: Array, Z: Array, m: int, values: Array) -> None:
    """Evaluate a univariate leaf for ``m`` rows."""
    variable = nodes[i]["scope"]
    mean, precision, log_norm = nodes[i]["mean"], nodes[i]["precision"], nodes[i]["log_norm"]
    if m == 1:
        values[row, 0] = gaussian(Z[variable, 0], mean, precision, log_norm)
        return
    for r in range(0, m, WIDTH):
        store(values, row, r, gaussian(load(Z, variable, r), mean, precision, log_norm))


@kernel
def evaluate_multivariate(
    i: int,
    row: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    values: Array,
    scratch: Array,
) -> None:
    """Evaluate a multivariate leaf for ``m`` rows without missing values.

    ``scratch`` (>= k, >= padded(m)) takes the distances from the mean.
    """
    aligned_stack()
    k, scope, offset = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    whitening = offset + moments_length(k)
    for r in range(0, m, WIDTH):
        for a in range(k):
            store(scratch, a, r, load(Z, scopes[scope + a], r) - stats[offset + a])
        total = spread(nodes[i]["log_norm"])
        for a in range(k):
            y = whitened(stats, whitening + a * k, a + 1, scratch, 0, r)
            total = fma(-0.5 * y, y, total)
        store(values, row, r, total)


@kernel
def whitened(stats: Array, factors: int, n: int, scratch: Array, distances: int, r: int) -> Value:
    """Return one entry of y: ``n`` factors of W times as many distances from the mean.

    The factors begin at offset ``factors`` of ``stats``, the distances at row ``distances`` of
    ``scratch``.
    """
    y = spread(0.0)
    for b in range(n):
        y = fma(stats[factors + b], load(scratch, distances + b, r), y)
    return y


@kernel
def multivariate_of_row(
    i: int, nodes: Array, scopes: Array, stats: Array, Z: Array, scratch: Array
) -> float:
    """Return the log-density of a multivariate leaf for one row without missing values."""
    k, scope, offset = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    whitening = offset + moments_length(k)
    total: float = nodes[i]["log_norm"]
    for a in range(k):
        scratch[a, 0] = Z[scopes[scope + a], 0] - stats[offset + a]
        y = 0.0
        for b in range(a + 1):
            y = fma(stats[whitening + a * k + b], scratch[b, 0], y)
        total = fma(-0.5 * y, y, total)
    return total


@kernel
def refresh_leaf(i: int, nodes: Array, variance_floor: float) -> None:
    """Recompute the precision and the constant of a univariate leaf from its variance."""
    variance = max(nodes[i]["variance"], variance_floor, SMALLEST_VARIANCE)
    nodes[i]["precision"] = 1.0 / variance
    nodes[i]["log_norm"] = -0.5 * (LOG_2PI + log_positive(variance))


@kernel
def refresh_multivariate(i: int, nodes: Array, stats: Array, variance_floor: float) -> None:
    """Recompute the whitening matrix and the constant of a multivariate leaf.

    The floor is added to the diagonal. If the covariance is still singular, SINGULAR_RIDGE is added
    for good, or a larger ridge if that is too small for its size.
    """
    k, offset = nodes[i]["n_scope"], nodes[i]["stats"]
    whitening = offset + moments_length(k)
    ridge = SINGULAR_RIDGE
    while not factorise(stats, offset, k, variance_floor):
        for a in range(k):
            stats[offset + 2 * k + a * k + a] += ridge
        ridge *= 2.0
    log_norm = -0.5 * k * LOG_2PI
    for a in range(k):
        log_norm -= math.log(stats[whitening + a * k + a])
    invert_factor(stats, whitening, k)
    nodes[i]["log_norm"] = log_norm
    nodes[i]["variance"] = variance_floor


@kernel
def factorise(stats: Array, offset: int, k: int, variance_floor: float) -> bool:
    """Write the lower Cholesky factor to where the whitening matrix is; False if singular."""
    covariance, factor = offset + 2 * k, offset + moments_length(k)
    largest = 0.0
    for a in range(k):
        largest = max(largest, stats[covariance + a * k + a] + variance_floor)
    for a in range(k):
        for b in range(a + 1):
            value = stats[covariance + b * k + a]
            if a == b:
                value += variance_floor
            for c in range(b):
                value -= stats[factor + a * k + c] * stats[factor + b * k + c]
            if b < a:
                stats[factor + a * k + b] = value / stats[factor + b * k + b]
            elif value > SINGULAR_RATIO * largest:
                stats[factor + a * k + a] = math.sqrt(value)
            else:
                return False
    return True


@kernel
def invert_factor(stats: Array, factor: int, k: int) -> None:
    """Invert a lower triangular matrix in place, column by column."""
    for b in range(k):
        stats[factor + b * k + b] = 1.0 / stats[factor + b * k + b]
        for a in range(b + 1, k):
            value = 0.0
            for c in range(b, a):
                value -= stats[factor + a * k + c] * stats[factor + c * k + b]
            stats[factor + a * k + b] = value / stats[factor + a * k + a]
