"""Kernels of Gaussians over variables of which some are missing.

As in `gaussian_kernels`, y = W (x - mean) has independent N(0, 1) entries. Whatever value missing
variables take, y moves along their columns of W, so that the observed ones' own distance is what is
left of y across those columns. Rows that lack the same variables share these directions.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.blocks import copy_columns
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    Value,
    aligned_stack,
    all_below,
    choose,
    fma,
    load,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import log_positive

from .gaussian_kernels import LOG_2PI, whiten

SQUARED, OBSERVED_DISTANCE, OBSERVED_NORM = -3, -2, -1
"""The last rows of ``lanes`` (> 3 d + 2, WIDTH): the squared length of y across missing directions,
and what `observed_distances` finds. The first ones are, for k variables, distances from the mean, y
and y across missing directions, k each. It is one array as kernels count references to each."""


@kernel
def find_patterns(Z: Array, variables: Array, start: int, n: int, which: Array) -> bool:
    """Find for each of ``n`` columns of ``Z``, from ``start`` on, the first that lacks the same.

    Of the ``variables`` (k,). Columns come in whole lanes; returns whether none of all these lacks
    any, those past the ``n`` too.
    """
    aligned_stack()
    which[:n] = 0
    complete, alike = True, True
    for v in variables:
        x = load(Z, v, start)
        is_known = all_below(choose(x == x, 0.0, 1.0), 0.5)
        complete &= is_known
        alike &= is_known or all_below(choose(x == x, 1.0, 0.0), 0.5)
    for i in range(1, 0 if alike else n):
        which[i] = which[i - 1]  # columns that lack the same often come together
        if not lack_the_same(Z, variables, start + i - 1, start + i):
            which[i] = 0
            while not lack_the_same(Z, variables, start + which[i], start + i):
                which[i] += 1
    return complete


@kernel
def lack_the_same(Z: Array, variables: Array, r: int, other: int) -> bool:
    """Whether two columns of ``Z`` lack the same of the ``variables`` (k,)."""
    same = True
    for v in variables:
        same &= (Z[v, r] == Z[v, r]) == (Z[v, other] == Z[v, other])
    return same


@kernel
def incomplete_distances(
    Z: Array, mean: Array, whitening: Array, log_norm: Array, distance: Array, norm: Array
) -> None:
    """Fill ``distance`` and ``norm`` (K, m) by what is observed of the columns of ``Z`` (d, m)."""
    K, d = mean.shape
    variables, which, block = np.arange(d), np.empty(WIDTH, np.int64), np.zeros((d, WIDTH))
    lanes, directions = np.empty((3 * d + 3, WIDTH)), np.empty((2 * d, d))
    for start in range(0, Z.shape[1], WIDTH):
        n = min(WIDTH, Z.shape[1] - start)
        copy_columns(Z, start, n, block)
        find_patterns(block, variables, 0, n, which)
        for k in range(K):
            observed_distances(
                block, variables, 0, n, mean[k], whitening[k], log_norm[k], which, lanes, directions
            )
            for i in range(n):
                distance[k, start + i] = lanes[OBSERVED_DISTANCE, i]
                norm[k, start + i] = lanes[OBSERVED_NORM, i]


@kernel
def observed_distances(
    Z: Array,
    variables: Array,
    start: int,
    n: int,
    mean: Array,
    W: Array,
    log_norm: float,
    which: Array,
    lanes: Array,
    directions: Array,
) -> None:
    """Fill the last rows of ``lanes`` with squared distances and log-densities at distance 0.

    By what is observed of the ``variables`` (k,) in ``n`` columns of ``Z`` from ``start`` on, which
    come in whole lanes, and of which ``which`` says which ones lack the same. ``directions``
    (>= 2 k, >= k) is scratch.
    """
    aligned_stack()
    k = len(variables)
    for a in range(k):
        gap = load(Z, variables[a], start) - mean[a]
        store(lanes, a, 0, choose(gap == gap, gap, 0.0))
    whole = whiten(W, lanes)
    for i in range(n):
        if which[i] != i:
            continue
        n_missing, more = missing_directions(Z, variables, start + i, W, directions)
        squared, norm = whole, log_norm + more if n_missing < k else 0.0
        if n_missing > 0:
            squared = remove_directions(n_missing, k, lanes, directions)
        store(lanes, len(lanes) + SQUARED, 0, squared if n_missing < k else spread(0.0))
        for j in range(i, n):
            if which[j] == i:
                lanes[OBSERVED_DISTANCE, j], lanes[OBSERVED_NORM, j] = lanes[SQUARED, j], norm


@kernel
def remove_directions(n: int, k: int, lanes: Array, directions: Array) -> Value:
    """Fill y across the first ``n`` > 0 directions; return its squared length."""
    aligned_stack()
    for i in range(n):
        first, along = k if i == 0 else 2 * k, spread(0.0)
        for c in range(k):
            along = fma(directions[i, c], load(lanes, first + c, 0), along)
        for c in range(k):
            rest = fma(0.0 - along, directions[i, c], load(lanes, first + c, 0))
            store(lanes, 2 * k + c, 0, rest)
    total = spread(0.0)
    for c in range(k):
        total = fma(load(lanes, 2 * k + c, 0), load(lanes, 2 * k + c, 0), total)
    return total


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
def missing_directions(
    Z: Array, variables: Array, r: int, whitening: Array, directions: Array
) -> tuple[int, float]:
    """Make the columns of W of missing variables orthogonal, in the first rows of ``directions``.

    Of those that column ``r`` of ``Z`` lacks of the ``variables`` (k,). Their triangular factor
    goes to the rows after ``k``. Returns their number and what they add to the log norm.
    """
    n, log_norm = 0, 0.0
    for a in range(len(variables)):
        if Z[variables[a], r] != Z[variables[a], r]:
            length = add_direction(whitening, a, n, directions)
            log_norm += 0.5 * LOG_2PI - log_positive(length)
            n += 1
    return n, log_norm


@kernel
def add_direction(whitening: Array, v: int, n: int, directions: Array) -> float:
    """Add a column of W to ``n`` orthogonal directions; return its length across them."""
    d = len(whitening)
    for c in range(d):
        directions[n, c] = whitening[c, v]
    for other in range(n):
        along = 0.0
        for c in range(d):
            along = fma(directions[other, c], directions[n, c], along)
        for c in range(d):
            directions[n, c] = fma(-along, directions[other, c], directions[n, c])
        directions[d + other, n] = along
    length = 0.0
    for c in range(d):
        length = fma(directions[n, c], directions[n, c], length)
    length = math.sqrt(length)
    directions[d + n, n] = length
    for c in range(d):
        directions[n, c] *= 1.0 / length
    return length


@kernel
def fill_missing(
    Z: Array,
    variables: Array,
    r: int,
    mean: Array,
    whitening: Array,
    directions: Array,
    x: Array,
    covariance: Array,
) -> int:
    """Fill ``x`` (d,) with column ``r`` of ``Z`` (d, m) and the conditional means of what it lacks.

    ``covariance`` (d, d) takes the conditional covariance of the missing ``variables`` (d,), in its
    first rows and columns; ``directions`` (2 d, d) is scratch. Returns their number.
    """
    d = len(variables)
    y, solution = np.empty((2, d))
    for a in range(d):
        y[a] = 0.0
        for b in range(a + 1):
            gap = Z[variables[b], r] - mean[b]
            y[a] = fma(whitening[a, b], 0.0 if gap != gap else gap, y[a])
    n, _ = missing_directions(Z, variables, r, whitening, directions)
    solve_missing(n, y, directions, solution)
    i = 0
    for v in range(d):
        x[v] = Z[variables[v], r]
        if x[v] != x[v]:
            x[v] = mean[v] + solution[i]
            i += 1
    conditional_covariance(n, d, directions, covariance)
    return n


@kernel
def solve_missing(n: int, y: Array, directions: Array, solution: Array) -> None:
    """Fill ``solution`` with how far ``n`` missing variables are from their means, given y (d,)."""
    d = len(y)
    for i in range(n):
        solution[i] = 0.0
        for c in range(d):
            solution[i] -= directions[i, c] * y[c]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            solution[i] -= directions[d + i, j] * solution[j]
        solution[i] /= directions[d + i, i]


@kernel
def conditional_covariance(n: int, d: int, directions: Array, covariance: Array) -> None:
    """Fill the first ``n`` rows and columns with the inverse of R^T R, R the triangular factor."""
    inverse = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        inverse[i, i] = 1.0 / directions[d + i, i]
        for j in range(i + 1, n):
            total = 0.0
            for c in range(i + 1, j + 1):
                total -= directions[d + i, c] * inverse[c, j]
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
    directions, covariance = np.empty((2 * d, d)), np.empty((d, d))
    x, missing, variables = np.empty(d), np.empty(d, np.int64), np.arange(d)
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
                fill_missing(Z, variables, r, mean[k], whitening[k], directions, x, covariance)
                for i in range(n):
                    for j in range(i + 1):
                        squares[k, missing[i], missing[j]] += share * covariance[i, j]
            for a in range(d):
                weighted = share * x[a]
                sums[k, a] += weighted
                for b in range(a + 1):
                    squares[k, a, b] += weighted * x[b]
