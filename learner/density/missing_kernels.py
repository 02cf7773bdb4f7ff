"""Kernels of Gaussians over variables of which some are missing.

As in `gaussian_kernels`, y = W (x - mean) has independent N(0, 1) entries. Whatever value missing
variables take, y moves along their columns of W, so that the observed ones' own distance is what is
left of y across those columns.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import fma
from faust_oslrau.learner.vector.math import log_positive

from .gaussian_kernels import LOG_2PI

NONE = -1
"""In place of a variable."""


@kernel
def incomplete_distances(
    Z: Array,
    columns: Array,
    mean: Array,
    whitening: Array,
    log_norm: Array,
    distance: Array,
    norm: Array,
) -> None:
    """Fill ``distance`` and ``norm`` (K, m) by what is observed of some ``columns`` (n,).

    Columns that lack the same variables as the one before share its directions.
    """
    K, d = mean.shape
    scratch, z, missing = new_scratch(d), np.empty(d), np.empty(d, np.bool_)
    for k in range(K):
        missing[:] = False
        n, more = 0, 0.0
        for r in columns:
            for v in range(d):
                z[v] = Z[v, r]
            if not lacks_the_same(z, missing):
                n, more = missing_directions(z, whitening[k], scratch)
            distance[k, r] = distance_across(z, mean[k], whitening[k], n, scratch)
            norm[k, r] = log_norm[k] + more if n < d else 0.0


@kernel
def lacks_the_same(z: Array, missing: Array) -> bool:
    """Whether ``z`` (d,) lacks the ``missing`` (d,) variables, which become its own."""
    same = True
    for v in range(len(z)):
        absent = z[v] != z[v]
        same = same and absent == missing[v]
        missing[v] = absent
    return same


@kernel
def covariance_of_last(whitening: Array, first: int, covariance: Array) -> None:
    """Fill lower triangles (K, n, n) with the covariances of the variables from ``first`` on."""
    K, d = whitening.shape[:2]
    factor, across = np.empty((2, d, d))
    for k in range(K):
        invert_triangle(whitening[k], factor)
        for a in range(d):
            for b in range(d):
                across[b, a] = factor[a, b]
        for a in range(first, d):
            covariance[k, a - first] = 0.0
            for c in range(a + 1):
                for b in range(first, a + 1):  # innermost: no sum waits for its last term
                    total = covariance[k, a - first, b - first]
                    covariance[k, a - first, b - first] = fma(factor[a, c], across[c, b], total)


@kernel
def invert_triangle(triangle: Array, inverse: Array) -> None:
    """Fill ``inverse`` (d, d) with that of a lower triangle."""
    inverse[:] = 0.0
    for a in range(len(triangle)):
        for c in range(a):
            for b in range(c + 1):
                inverse[a, b] = fma(-triangle[a, c], inverse[c, b], inverse[a, b])
        scale = 1.0 / triangle[a, a]
        for b in range(a):
            inverse[a, b] *= scale
        inverse[a, a] = scale


@kernel
def new_scratch(d: int) -> Array:
    """Room for orthogonal directions, their triangular factor, and vectors of ``d`` entries."""
    return np.zeros((2 * d + 4, d))


@kernel
def distance_across(z: Array, mean: Array, whitening: Array, n: int, scratch: Array) -> float:
    """Squared distance of what is observed of ``z`` (d,), which lacks the first ``n`` directions.

    Leaves y across these in row 2 d of ``scratch``.
    """
    d = len(z)
    y = scratch[2 * d]
    whiten_observed(z, mean, whitening, NONE, y)
    remove_directions(y, n, d, scratch)
    return squared_length(y, d) if n < d else 0.0


@kernel
def squared_length(y: Array, d: int) -> float:
    """Add up the squares of the first ``d`` entries."""
    total = 0.0
    for c in range(d):
        total = fma(y[c], y[c], total)
    return total


@kernel
def whiten_observed(z: Array, mean: Array, whitening: Array, without: int, y: Array) -> None:
    """Fill ``y`` with W times the distances from the mean, 0 where missing or ``without``."""
    for a in range(len(z)):
        total = 0.0
        for b in range(a + 1):
            dx = z[b] - mean[b]
            total = fma(whitening[a, b], 0.0 if dx != dx or b == without else dx, total)
        y[a] = total


@kernel
def missing_directions(z: Array, whitening: Array, scratch: Array) -> tuple[int, float]:
    """Make the columns of W of missing variables orthogonal, in the first rows of ``scratch``.

    Their triangular factor goes to the rows after ``d``. Returns their number and what they add
    to the log norm.
    """
    d, n, log_norm = len(z), 0, 0.0
    for v in range(d):
        if z[v] != z[v]:
            length = add_direction(whitening, v, n, scratch)
            log_norm += 0.5 * LOG_2PI - log_positive(length)
            n += 1
    return n, log_norm


@kernel
def add_direction(whitening: Array, v: int, n: int, scratch: Array) -> float:
    """Add a column of W to ``n`` orthogonal directions; return its length across them."""
    d = len(whitening)
    direction = scratch[n]
    for c in range(d):
        direction[c] = whitening[c, v]
    for other in range(n):
        scratch[d + other, n] = remove_direction(direction, scratch[other], d)
    length = math.sqrt(squared_length(direction, d))
    scratch[d + n, n] = length
    for c in range(d):
        direction[c] /= length
    return length


@kernel
def remove_directions(y: Array, n: int, d: int, scratch: Array) -> None:
    """Make ``y`` (d,) orthogonal to the first ``n`` directions."""
    for other in range(n):
        remove_direction(y, scratch[other], d)


@kernel
def remove_direction(y: Array, direction: Array, d: int) -> float:
    """Make ``y`` (d,) orthogonal to one direction; return the length of what is removed."""
    along = 0.0
    for c in range(d):
        along = fma(direction[c], y[c], along)
    for c in range(d):
        y[c] = fma(-along, direction[c], y[c])
    return along


@kernel
def fill_missing(
    z: Array, mean: Array, whitening: Array, scratch: Array, x: Array, covariance: Array
) -> tuple[int, float]:
    """Fill ``x`` (d,) with ``z`` and the conditional means of what it lacks.

    ``covariance`` (d, d) takes the conditional covariance of the missing variables, in its first
    rows and columns. Returns their number and what they add to the log norm. Leaves y across their
    directions in row 2 d of ``scratch``.
    """
    d = len(z)
    y, solution = scratch[2 * d], scratch[2 * d + 1]
    whiten_observed(z, mean, whitening, NONE, y)
    n, log_norm = missing_directions(z, whitening, scratch)
    for i in range(n):
        solution[i] = -remove_direction(y, scratch[i], d)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            solution[i] -= scratch[d + i, j] * solution[j]
        solution[i] /= scratch[d + i, i]
    i = 0
    for v in range(d):
        x[v] = z[v]
        if z[v] != z[v]:
            x[v] = mean[v] + solution[i]
            i += 1
    conditional_covariance(n, d, scratch, covariance)
    return n, log_norm


@kernel
def conditional_covariance(n: int, d: int, scratch: Array, covariance: Array) -> None:
    """Fill the first ``n`` rows and columns with the inverse of R^T R, R the triangular factor."""
    inverse = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        inverse[i, i] = 1.0 / scratch[d + i, i]
        for j in range(i + 1, n):
            total = 0.0
            for c in range(i + 1, j + 1):
                total -= scratch[d + i, c] * inverse[c, j]
            inverse[i, j] = total * inverse[i, i]
    for i in range(n):
        for j in range(n):
            total = 0.0
            for c in range(max(i, j), n):
                total += inverse[i, c] * inverse[j, c]
            covariance[i, j] = total


@kernel
def add_moments(
    Z: Array,
    shares: Array,
    least_share: float,
    mean: Array,
    whitening: Array,
    sums: Array,
    squares: Array,
) -> None:
    """Add the columns of ``Z`` (d, m) by their ``shares`` (m, K) to the Gaussians' moments.

    ``sums`` (K, d) of the values, ``squares`` (K, d, d) of their products, lower triangles. Missing
    values count with their conditional mean and covariance.
    """
    K, d = mean.shape
    scratch, covariance = new_scratch(d), np.empty((d, d))
    z, x, missing = np.empty(d), np.empty(d), np.empty(d, np.int64)
    for r in range(Z.shape[1]):
        n = 0
        for v in range(d):
            z[v] = x[v] = Z[v, r]
            if z[v] != z[v]:
                missing[n] = v
                n += 1
        for k in range(K):
            share = shares[r, k]
            if share < least_share:
                continue
            if n > 0:
                fill_missing(z, mean[k], whitening[k], scratch, x, covariance)
                for i in range(n):
                    for j in range(i + 1):
                        squares[k, missing[i], missing[j]] += share * covariance[i, j]
            for a in range(d):
                weighted = share * x[a]
                sums[k, a] += weighted
                for b in range(a + 1):
                    squares[k, a, b] += weighted * x[b]
