"""Gaussian leaves: their log-densities, and the constants that these need.

A multivariate leaf stores its whitening matrix W, the inverse of the lower Cholesky factor of its
covariance: y = W (x - mean) has independent N(0, 1) entries.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.density.gaussian_kernels import LOG_2PI, invert_factor, whiten
from faust_oslrau.learner.density.missing_kernels import (
    OBSERVED_DISTANCE,
    OBSERVED_NORM,
    find_patterns,
    observed_distances,
)
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    Value,
    aligned_stack,
    choose,
    fma,
    load,
    store,
)
from faust_oslrau.learner.vector.math import log_positive

from .layout import moments_length

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
def parameters(i: int, nodes: Array, scopes: Array, stats: Array) -> tuple[Array, Array, Array]:
    """Return variables (k,), mean (k,) and whitening matrix (k, k) of a multivariate leaf."""
    k, scope, offset = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    W = offset + moments_length(k)
    return (
        scopes[scope : scope + k], stats[offset : offset + k], stats[W : W + k * k].reshape((k, k))
    )  # fmt: skip


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
    complete: bool,
    which: Array,
    lanes: Array,
    directions: Array,
) -> None:
    """Evaluate a multivariate leaf for ``m`` rows; ``complete`` if none of ``Z`` lacks a value.

    The last three arrays are scratch: see `observed_distances`.
    """
    aligned_stack()
    variables, mean, W = parameters(i, nodes, scopes, stats)
    k, log_norm = len(variables), nodes[i]["log_norm"]
    for r in range(0, m, WIDTH):
        n = min(WIDTH, m - r)
        if complete or find_patterns(Z, variables, r, n, which):
            for a in range(k):
                store(lanes, a, 0, load(Z, variables[a], r) - mean[a])
            store(values, row, r, log_norm - 0.5 * whiten(W, lanes))
        else:
            observed_distances(Z, variables, r, n, mean, W, log_norm, which, lanes, directions)
            distance = load(lanes, len(lanes) + OBSERVED_DISTANCE, 0)
            store(values, row, r, load(lanes, len(lanes) + OBSERVED_NORM, 0) - 0.5 * distance)


@kernel
def multivariate_of_row(
    i: int, nodes: Array, scopes: Array, stats: Array, Z: Array, dx: Array
) -> float:
    """Return the log-density of a multivariate leaf for one row without missing values."""
    k, scope, offset = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    start, total = offset + moments_length(k), 0.0
    for a in range(k):
        dx[a, 0] = Z[scopes[scope + a], 0] - stats[offset + a]
        y = 0.0
        for b in range(a + 1):
            y = fma(stats[start + a * k + b], dx[b, 0], y)
        total = fma(y, y, total)
    return float(nodes[i]["log_norm"] - 0.5 * total)


@kernel
def incomplete_of_row(
    i: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    block: Array,
    which: Array,
    lanes: Array,
    directions: Array,
) -> float:
    """Do the same for the first column of a ``block`` in whole lanes, which may lack values."""
    variables, mean, W = parameters(i, nodes, scopes, stats)
    which[0] = 0
    observed_distances(
        block, variables, 0, 1, mean, W, nodes[i]["log_norm"], which, lanes, directions
    )
    return float(lanes[OBSERVED_NORM, 0] - 0.5 * lanes[OBSERVED_DISTANCE, 0])


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
    W = offset + moments_length(k)
    matrix, whitening = stats[offset + 2 * k : W], stats[W : W + k * k].reshape((k, k))
    covariance, ridge, regular = np.empty((k, k)), SINGULAR_RIDGE, False
    while not regular:
        largest = 0.0
        for a in range(k):
            for b in range(a + 1):
                covariance[a, b] = matrix[b * k + a]
            covariance[a, a] += variance_floor
            largest = max(largest, covariance[a, a])
        log_norm, regular = invert_factor(covariance, SINGULAR_RATIO * largest, whitening)
        if not regular:
            for a in range(k):
                matrix[a * k + a] += ridge
            ridge *= 2.0
    nodes[i]["log_norm"] = log_norm
    nodes[i]["variance"] = variance_floor
