"""Kernels that tell what the other variables of a row say of each one, by a Gaussian over all.

A variable is left out by downdating: its value moves y = W (x - mean) along its column of W. So the
part of y along that column is subtracted from the squared distance. Rows that lack the same
variables share all that does not depend on their values.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.blocks import copy_columns
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, fma, load, spread, store
from faust_oslrau.learner.vector.math import log_positive

from .components import NEGLIGIBLE, Components, append
from .gaussian_kernels import LOG_2PI
from .missing_kernels import (
    add_direction,
    conditional_covariance,
    lack_the_same,
    missing_directions,
    solve_missing,
)


@kernel
def condition(
    whitening: Array, missing: Array, directions: Array, gain: Array, deviation: Array
) -> None:
    """Condition a Gaussian on all variables that are not ``missing`` (k,).

    Fills ``gain`` (missing, observed) with what means gain by each deviation of an observed
    variable, and ``deviation`` (missing,). ``directions`` (2 k, k) is scratch.
    """
    k, n, observed = len(missing), 0, 0
    for a in range(k):
        if missing[a]:
            add_direction(whitening, a, n, directions)
            n += 1
    covariance, y, solution = np.empty((n, n)), np.empty(k), np.empty(n)
    conditional_covariance(n, k, directions, covariance)
    for i in range(n):
        deviation[i] = math.sqrt(covariance[i, i])
    for b in range(k):
        if not missing[b]:
            for a in range(k):
                y[a] = whitening[a, b]
            solve_missing(n, y, directions, solution)
            for i in range(n):
                gain[i, observed] = solution[i]
            observed += 1


@kernel
def condition_each(whitening: Array, missing: Array, gain: Array, deviation: Array) -> None:
    """Fill in what `Given` holds of Gaussians (K, d, d) where variables are ``missing`` (d,)."""
    d = len(missing)
    directions = np.empty((2 * d, d))
    for k in range(len(whitening)):
        condition(whitening[k], missing, directions, gain[k], deviation[k])


@kernel
def add_gaussians(
    Z: Array,
    missing: Array,
    mean: Array,
    gain: Array,
    deviation: Array,
    share: Array,
    rows: Array,
    location: Array,
    scale: Array,
    components: Components,
) -> None:
    """Add Gaussians given what is observed of columns ``Z`` (d, m), all lacking ``missing`` (d,).

    ``mean`` (K, d), ``gain`` and ``deviation`` are the Gaussians', as `Given` has them. ``share``
    (K, m) is the probability of each in each column, ``rows`` (m,) are the columns' places among
    the ``components``.
    """
    aligned_stack()
    (d, m), n, K = Z.shape, deviation.shape[1], len(mean)
    block, off, centre = np.zeros((d, WIDTH)), np.empty((d - n, WIDTH)), np.empty((n * K, WIDTH))
    lacking, known = np.flatnonzero(missing), np.flatnonzero(~missing)
    for start in range(0, m, WIDTH):
        lanes = min(WIDTH, m - start)
        copy_columns(Z, start, lanes, block)
        for k in range(K):
            if share[k, start : start + lanes].max() <= NEGLIGIBLE:
                continue
            for b in range(d - n):
                store(off, b, 0, load(block, known[b], 0) - mean[k, known[b]])
            for a in range(n):
                total, v = spread(mean[k, lacking[a]]), lacking[a]
                for b in range(d - n):
                    total = fma(gain[k, a, b], load(off, b, 0), total)
                store(centre, a * K + k, 0, fma(total, scale[v], location[v]))
        for i in range(lanes):
            r, some = rows[start + i], np.flatnonzero(share[:, start + i] > NEGLIGIBLE)
            for a in range(n):
                v = lacking[a]
                for one in some:
                    wide = scale[v] * deviation[one, a]
                    append(v, r, share[one, start + i], centre[a * K + one, i], wide, components)


FAR = 1e3
"""Size of a variable's part of y from which on rounding would cost more than 1e-10 of what remains
of the others."""

DISTANCE, NORM, MEAN, VARIANCE = range(4)
"""What is said of each of k variables, k rows each: the squared distance of the others and what to
add to the log norm for their log-density, then its mean and variance given them."""

OWN_DEVIATION, OWN_VARIANCE, OWN_NORM, IS_MISSING = -4, -3, -2, -1
"""The last rows of ``known``: of each variable the root of VARIANCE, which is one over the length
of its column across those of missing ones, VARIANCE and NORM, and whether it is missing. The first
rows are directions of missing variables and their triangular factor (2 k); directions of the
observed ones across these (k); and the covariance of the missing ones (k)."""

GAP, WHITE, ACROSS, SOLUTION = range(4)
"""Rows of ``y`` for k variables: distances from the mean, 0 where values are missing, y, what is
left of it across missing directions, and how far missing variables are from their means."""


@kernel
def new_scratch(d: int) -> tuple[Array, Array]:
    """Return ``known`` and ``y`` for ``d`` variables."""
    return np.empty((4 * d + 4, d)), np.empty((4, d))


@kernel
def given_others(
    Z: Array,
    variables: Array,
    r: int,
    mean: Array,
    W: Array,
    is_known: bool,
    said: Array,
    i: int,
    known: Array,
    y: Array,
) -> None:
    """Fill column ``i`` of ``said`` with what the others say of each of the ``variables`` (k,).

    In column ``r`` of ``Z``. ``is_known`` if the call before was for the column before it and the
    same Gaussian.
    """
    k = len(variables)
    if not (is_known and lack_the_same(Z, variables, r - 1, r)):
        prepare(Z, variables, r, W, known)
    n, m = 0, 0
    for a in range(k):
        n += known[IS_MISSING, a] > 0.0
        gap = Z[variables[a], r] - mean[a]
        y[GAP, a] = gap if gap == gap else 0.0
    total = whiten_across(n, W, known, y)
    solve_missing(n, y[WHITE], known, y[SOLUTION])
    for a in range(k):
        said[NORM * k + a, i] = known[OWN_NORM, a]
        said[VARIANCE * k + a, i] = known[OWN_VARIANCE, a]
        if known[IS_MISSING, a] > 0.0:
            said[DISTANCE * k + a, i] = total if n < k else 0.0
            said[MEAN * k + a, i] = mean[a] + y[SOLUTION, m]
            m += 1
            continue
        gap, direction, rest = y[GAP, a], known[2 * k + a], total
        along = product(direction, y[ACROSS])
        is_far = abs(along) > FAR
        if is_far:  # leave it out from the start
            y[GAP, a] = 0.0
            rest = whiten_across(n, W, known, y)
            along = product(direction, y[ACROSS])
        said[DISTANCE * k + a, i] = max(rest - along * along, 0.0) if n < k - 1 else 0.0
        said[MEAN * k + a, i] = mean[a] + y[GAP, a] - along * known[OWN_DEVIATION, a]
        if is_far:
            y[GAP, a] = gap
            whiten_across(n, W, known, y)


@kernel
def whiten_across(n: int, W: Array, known: Array, y: Array) -> float:
    """Fill y, and what is left of it across ``n`` directions; return the squared length of that."""
    for a in range(len(W)):
        total = 0.0
        for b in range(a + 1):
            total = fma(W[a, b], y[GAP, b], total)
        y[WHITE, a], y[ACROSS, a] = total, total
    for i in range(n):
        along = product(known[i], y[ACROSS])
        for c in range(len(W)):
            y[ACROSS, c] = fma(-along, known[i, c], y[ACROSS, c])
    return product(y[ACROSS], y[ACROSS])


@kernel
def product(one: Array, other: Array) -> float:
    """Return the scalar product of two vectors (k,)."""
    total = 0.0
    for c in range(len(one)):
        total = fma(one[c], other[c], total)
    return total


@kernel
def prepare(Z: Array, variables: Array, r: int, W: Array, known: Array) -> None:
    """Work out what does not depend on the values of columns that lack the same as ``r``."""
    k, i = len(variables), 0
    n, norm = missing_directions(Z, variables, r, W, known)
    if n > 0:
        conditional_covariance(n, k, known, known[3 * k :])
    for a in range(k):
        known[IS_MISSING, a] = Z[variables[a], r] != Z[variables[a], r]
        if known[IS_MISSING, a] > 0.0:
            known[OWN_VARIANCE, a], known[OWN_NORM, a] = known[3 * k + i, i], norm
            i += 1
    for a in range(k):
        if known[IS_MISSING, a] == 0.0:
            length = add_direction(W, a, n, known)
            for c in range(k):
                known[2 * k + a, c] = known[n, c]
            known[OWN_DEVIATION, a] = 1.0 / length
            known[OWN_VARIANCE, a] = 1.0 / (length * length)
            known[OWN_NORM, a] = norm + 0.5 * LOG_2PI - log_positive(length)


@kernel
def tell_columns(
    Z: Array, start: int, stop: int, mean: Array, W: Array, log_norm: float, result: Array
) -> None:
    """Fill ``result`` (4 d, m) with what the others say of each variable of ``Z`` (d, m).

    In the columns from ``start`` to ``stop``, by a Gaussian over all variables. NORM is here the
    others' log-density at distance 0.
    """
    d = len(Z)
    variables, (known, y) = np.arange(d), new_scratch(d)
    for r in range(start, stop):
        given_others(Z, variables, r, mean, W, r > start, result, r, known, y)
        for row in range(NORM * d, MEAN * d):
            result[row, r] += log_norm
