"""Kernels of Gaussians over all variables, several of them side by side.

Each has a whitening matrix W, the inverse of the lower Cholesky factor of its covariance:
y = W (x - mean) has independent N(0, 1) entries. Missing variables: whatever value they take, y
moves along their columns of W, so that the observed ones' own distance is what is left of y
across those columns.
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

FAR = 1e4
"""Size of a variable's part of y from which on taking it away would lose more than four digits."""


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
def incomplete_distances(
    Z: Array,
    columns: Array,
    mean: Array,
    whitening: Array,
    log_norm: Array,
    distance: Array,
    norm: Array,
) -> None:
    """Fill ``distance`` and ``norm`` (K, m) by what is observed of some ``columns`` (n,)."""
    scratch = new_scratch(len(Z))
    for r in columns:
        for k in range(len(mean)):
            found = observed_distance(Z[:, r], mean[k], whitening[k], scratch)
            distance[k, r], norm[k, r] = found[0], log_norm[k] + found[1]


@kernel
def covariance_of_last(whitening: Array, first: int, covariance: Array) -> None:
    """Fill ``covariance`` (K, n, n) with those of the variables from ``first`` on."""
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
                for b in range(first, d):  # innermost, so that no sum waits for its last term
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
def new_scratch(d: int) -> Array:
    """Room for orthogonal directions, their triangular factor, and vectors of ``d`` entries."""
    return np.zeros((2 * d + 4, d))


@kernel
def observed_distance(
    z: Array, mean: Array, whitening: Array, scratch: Array
) -> tuple[float, float]:
    """Squared distance of what is observed of ``z`` (d,), and what to add to the log norm."""
    d = len(z)
    y = scratch[2 * d]
    whiten_observed(z, mean, whitening, -1, y)
    n, log_norm = missing_directions(z, whitening, scratch)
    if n == d:
        return 0.0, log_norm
    remove_directions(y, n, scratch)
    total = 0.0
    for c in range(d):
        total = fma(y[c], y[c], total)
    return total, log_norm


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
        along = 0.0
        for c in range(d):
            along = fma(scratch[other, c], direction[c], along)
        scratch[d + other, n] = along
        for c in range(d):
            direction[c] = fma(-along, scratch[other, c], direction[c])
    length = 0.0
    for c in range(d):
        length = fma(direction[c], direction[c], length)
    length = math.sqrt(length)
    scratch[d + n, n] = length
    for c in range(d):
        direction[c] /= length
    return length


@kernel
def remove_directions(y: Array, n: int, scratch: Array) -> None:
    """Make ``y`` orthogonal to the first ``n`` directions."""
    for other in range(n):
        remove_direction(y, scratch[other])


@kernel
def remove_direction(y: Array, direction: Array) -> float:
    """Make ``y`` orthogonal to one direction; return the length of what is removed."""
    along = 0.0
    for c in range(len(y)):
        along = fma(direction[c], y[c], along)
    for c in range(len(y)):
        y[c] = fma(-along, direction[c], y[c])
    return along


@kernel
def fill_missing(
    z: Array, mean: Array, whitening: Array, scratch: Array, x: Array, covariance: Array
) -> int:
    """Fill ``x`` (d,) with ``z`` and the conditional means of what it lacks.

    ``covariance`` (d, d) takes the conditional covariance of the missing variables, in its first
    rows and columns. Returns their number.
    """
    d = len(z)
    y, solution = scratch[2 * d], scratch[2 * d + 1]
    whiten_observed(z, mean, whitening, -1, y)
    n, _ = missing_directions(z, whitening, scratch)
    for i in range(n):
        solution[i] = -remove_direction(y, scratch[i])
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
    return n


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
    x, missing = np.empty(d), np.empty(d, np.int64)
    for r in range(Z.shape[1]):
        n = 0
        for v in range(d):
            x[v] = Z[v, r]
            if x[v] != x[v]:
                missing[n] = v
                n += 1
        for k in range(K):
            share = shares[r, k]
            if share < least_share:
                continue
            if n > 0:
                fill_missing(Z[:, r], mean[k], whitening[k], scratch, x, covariance)
                for i in range(n):
                    for j in range(i + 1):
                        squares[k, missing[i], missing[j]] += share * covariance[i, j]
            for a in range(d):
                weighted = share * x[a]
                sums[k, a] += weighted
                for b in range(a + 1):
                    squares[k, a, b] += weighted * x[b]


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
