"""Kernels that tell what the other variables of a row say of each one, by a Gaussian over all.

A variable is left out by downdating: its value moves y = W (x - mean) along its column of W. So the
part of y along that column is subtracted from the squared distance. Rows that lack the same
variables share all that does not depend on their values.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.blocks import copy_columns
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    Value,
    absolute,
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
from .missing_kernels import (
    add_direction,
    conditional_covariance,
    find_patterns,
    length_along,
    missing_directions,
    remove_directions,
    whiten_observed,
)
from .mixtures import add_component

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


@kernel
def new_scratch(d: int) -> tuple[Array, Array, Array, Array, Array]:
    """Return ``said``, ``some``, ``which``, ``lanes`` and ``known`` for up to ``d`` variables."""
    return (
        np.empty((4 * d, WIDTH)), np.empty((4 * d, WIDTH)), np.zeros(WIDTH, np.int64),
        np.empty((4 * d + 3, WIDTH)), np.empty((4 * d + 4, d)),
    )  # fmt: skip


@kernel
def given_others(
    Z: Array,
    variables: Array,
    start: int,
    n: int,
    mean: Array,
    W: Array,
    is_known: bool,
    said: Array,
    some: Array,
    which: Array,
    lanes: Array,
    known: Array,
) -> None:
    """Fill ``said`` with what the others say of each of the ``variables`` (k,).

    In ``n`` columns of ``Z`` from ``start`` on, which come in whole lanes, and of which ``which``
    says which ones lack the same. ``is_known`` if the Gaussian is that of the call before.
    """
    k = len(variables)
    squared = whiten_observed(Z, variables, start, mean, W, lanes)
    for i in range(n):
        if which[i] != i:
            continue
        if not (is_known and lacks_the_same(Z, variables, start + i, known)):
            prepare(Z, variables, start + i, W, known)
            is_known = True
        alike = 0
        for j in range(i, n):
            alike += which[j] == i
        if alike == n:
            tell(mean, W, squared, lanes, known, said)
            return
        tell(mean, W, squared, lanes, known, some)
        for row in range(4 * k):
            for j in range(i, n):
                if which[j] == i:
                    said[row, j] = some[row, j]


@kernel
def lacks_the_same(Z: Array, variables: Array, r: int, known: Array) -> bool:
    """Whether a column of ``Z`` lacks of the variables (k,) what is known to be missing."""
    same = True
    for a in range(len(variables)):
        same &= (Z[variables[a], r] != Z[variables[a], r]) == (known[IS_MISSING, a] > 0.0)
    return same


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
def tell(mean: Array, W: Array, squared: Value, lanes: Array, known: Array, said: Array) -> None:
    """Fill ``said`` for rows that lack the variables that are known to be missing.

    ``squared`` is the squared length of y.
    """
    aligned_stack()
    k, n, i = len(mean), 0, 0
    for a in range(k):
        n += known[IS_MISSING, a] > 0.0
    is_near = all_below(squared, FAR * FAR)
    first, total = k, squared  # of y, where nothing is missing
    if n > 0:
        solve(n, k, lanes, known)
        first, total = 2 * k, remove_directions(n, k, lanes, known)
    for a in range(k):
        store(said, NORM * k + a, 0, spread(known[OWN_NORM, a]))
        store(said, VARIANCE * k + a, 0, spread(known[OWN_VARIANCE, a]))
        if known[IS_MISSING, a] > 0.0:
            store(said, DISTANCE * k + a, 0, total if n < k else spread(0.0))
            store(said, MEAN * k + a, 0, mean[a] + load(lanes, 3 * k + i, 0))
            i += 1
            continue
        along, centre = spread(0.0), mean[a] + load(lanes, a, 0)
        for c in range(a if n == 0 else 0, k):  # column a of W begins at row a
            along = fma(known[2 * k + a, c], load(lanes, first + c, 0), along)
        distance = total - along * along
        if not is_near and not all_below(absolute(along), FAR):
            far = absolute(along) > FAR
            from_the_start, others = leave_out(a, n, W, lanes, known)
            distance = choose(far, others, distance)
            along, centre = choose(far, from_the_start, along), choose(far, mean[a], centre)
        store(said, DISTANCE * k + a, 0, distance if n < k - 1 else spread(0.0))
        store(said, MEAN * k + a, 0, centre - along * known[OWN_DEVIATION, a])


@kernel
def solve(n: int, k: int, lanes: Array, known: Array) -> None:
    """Fill rows of ``lanes`` from 3 k on with how far missing variables are from their means."""
    aligned_stack()
    for i in range(n - 1, -1, -1):
        total = spread(0.0)
        for c in range(k):
            total = fma(0.0 - known[i, c], load(lanes, k + c, 0), total)
        for j in range(i + 1, n):
            total = fma(0.0 - known[k + i, j], load(lanes, 3 * k + j, 0), total)
        store(lanes, 3 * k + i, 0, total * (1.0 / known[k + i, i]))


@kernel
def leave_out(a: int, n: int, W: Array, lanes: Array, known: Array) -> tuple[Value, Value]:
    """Leave an observed variable out from the start.

    Returns the part of y along its direction, and the squared distance of the others.
    """
    aligned_stack()
    k, gap = len(W), load(lanes, a, 0)
    store(lanes, a, 0, spread(0.0))
    whiten(W, lanes)
    first = k
    if n > 0:
        remove_directions(n, k, lanes, known)
        first = 2 * k
    along, total = length_along(known, 2 * k + a, first, k, lanes), spread(0.0)
    for c in range(k):
        rest = fma(0.0 - along, known[2 * k + a, c], load(lanes, first + c, 0))
        total = fma(rest, rest, total)
    store(lanes, a, 0, gap)
    whiten(W, lanes)
    if n > 0:
        remove_directions(n, k, lanes, known)
    return along, total


@kernel
def tell_columns(
    Z: Array, start: int, stop: int, mean: Array, W: Array, log_norm: float, result: Array
) -> None:
    """Fill ``result`` (4, d, m) with what the others say of each variable of ``Z`` (d, m).

    In the columns from ``start`` to ``stop``, by a Gaussian over all variables. NORM is here the
    others' log-density at distance 0.
    """
    d = len(Z)
    variables, block = np.arange(d), np.zeros((d, WIDTH))
    said, some, which, lanes, known = new_scratch(d)
    for r in range(start, stop, WIDTH):
        n = min(WIDTH, stop - r)
        copy_columns(Z, r, n, block)
        find_patterns(block, variables, 0, n, which)
        given_others(block, variables, 0, n, mean, W, r > start, said, some, which, lanes, known)
        for row in range(4 * d):
            for i in range(n):
                result[row // d, row % d, r + i] = said[row, i]
    result[NORM, :, start:stop] += log_norm


@kernel
def add_gaussians(
    block: Array,
    variables: Array,
    n: int,
    mean: Array,
    whitening: Array,
    log_norm: Array,
    widths: Array,
    log_weight: Array,
    rest: Array,
    mixtures: Array,
) -> None:
    """Merge Gaussians, each at several widths, into the mixtures of ``n`` columns of a block.

    They are Gaussians of the ``variables`` (k,), which do not depend on the others; ``rest``
    (3, WIDTH) has the squared distances of these, log-densities at distance 0 and observed
    variables. ``log_weight`` (K, S) is that of each Gaussian at each width in the whole network.
    Moments are those of the Gaussian at its own width.
    """
    aligned_stack()
    k, observed = len(variables), load(rest, 2, 0)
    said, some, which, lanes, known = new_scratch(k)
    find_patterns(block, variables, 0, n, which)
    for v in variables:
        observed = observed + is_observed(block, v)
    for one in range(len(mean)):
        given_others(
            block, variables, 0, n, mean[one], whitening[one], False, said, some, which, lanes,
            known,
        )  # fmt: skip
        for a in range(k):
            v = variables[a]
            others = observed - is_observed(block, v)
            distance = load(said, DISTANCE * k + a, 0) + load(rest, 0, 0)
            norm = log_norm[one] + load(said, NORM * k + a, 0) + load(rest, 1, 0)
            own_mean = load(said, MEAN * k + a, 0)
            own_variance = load(said, VARIANCE * k + a, 0)
            for s in range(len(widths)):
                log_density = norm - others * log_positive(widths[s])
                log_density = log_density - distance * (0.5 / (widths[s] * widths[s]))
                log_density = log_density + log_weight[one, s]
                add_component(v, 0, log_density, own_mean, own_variance, len(block), mixtures)


@kernel
def is_observed(block: Array, v: int) -> Value:
    """Return 1 for each lane that has a value of the variable, else 0."""
    x = load(block, v, 0)
    return choose(x == x, spread(1.0), spread(0.0))
