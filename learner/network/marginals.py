"""Multivariate leaves where values are missing: the density of the marginal Gaussian.

It comes from the whitening matrix W of the whole leaf (`leaves`): the columns of the missing
variables are projected out.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import choose, fma
from faust_oslrau.learner.vector.math import log_positive

from .layout import moments_length
from .leaves import LOG_2PI

NONE = -1
"""Position that stands for no entry."""


@kernel
def evaluate_incomplete(
    i: int,
    row: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    values: Array,
    scratch: Array,
    vectors: Array,
    ends: Array,
) -> None:
    """Evaluate a multivariate leaf for ``m`` rows, some of which lack values.

    ``scratch`` (> 2 k + 1, m) and ``vectors`` (> d, d) are scratch, ``ends`` comes from
    `ends_of_runs`.
    """
    k, scope, offset = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    whitening, lacks = offset + moments_length(k), 2 * k + 1
    for r in range(m):
        values[row, r], scratch[lacks, r] = nodes[i]["log_norm"], 0.0
    for a in range(k):
        variable, mean = scopes[scope + a], stats[offset + a]
        for r in range(m):
            dx = Z[variable, r] - mean
            scratch[a + 1, r] = choose(dx == dx, dx, 0.0)
            scratch[lacks, r] += choose(dx == dx, 0.0, 1.0)
    for a in range(k):
        whiten(stats[whitening + a * k : whitening + a * k + a + 1], scratch, m)
        for r in range(m):
            values[row, r] = fma(-0.5 * scratch[0, r], scratch[0, r], values[row, r])
            scratch[k + 1 + a, r] = scratch[0, r]
    y, lo = scratch[k + 1 : 2 * k + 2], 0
    while lo < m:
        hi = lo + 1
        if scratch[lacks, lo] > 0.0:
            hi = end_of_run(i, nodes, scopes, Z, lo, ends)
            observed_densities(i, NONE, nodes, scopes, stats, Z, lo, hi, y, vectors, values[row])
        lo = hi


@kernel
def whiten(factors: Array, scratch: Array, m: int) -> None:
    """Fill the first row of ``scratch`` with the sum of the rows below times ``factors``."""
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
def ends_of_runs(Z: Array, m: int) -> Array:
    """Return for each of ``m`` columns of ``Z`` (d, >= m) the end of its run.

    The columns of a run lack the same variables. Empty if no column lacks any.
    """
    complete = True
    for v in range(len(Z)):
        for r in range(m):
            complete &= Z[v, r] == Z[v, r]
    ends = np.full(0 if complete else m, m, np.int64)
    for r in range(len(ends) - 2, -1, -1):
        same = True
        for v in range(len(Z)):
            same &= (Z[v, r] == Z[v, r]) == (Z[v, r + 1] == Z[v, r + 1])
        ends[r] = ends[r + 1] if same else r + 1
    return ends


@kernel
def end_of_run(i: int, nodes: Array, scopes: Array, Z: Array, lo: int, ends: Array) -> int:
    """Return the end of the columns from ``lo`` on that lack the same variables of node ``i``."""
    k, scope, hi = nodes[i]["n_scope"], nodes[i]["scope"], int(ends[lo])
    while hi < len(ends):
        for b in range(k):
            v = scopes[scope + b]
            if (Z[v, lo] == Z[v, lo]) != (Z[v, hi] == Z[v, hi]):
                return hi
        hi = int(ends[hi])
    return hi


@kernel
def observed_densities(
    i: int,
    a: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    lo: int,
    hi: int,
    y: Array,
    vectors: Array,
    density: Array,
) -> float:
    """Fill ``density[lo:hi]`` with the log-density of the observed entries without entry ``a``.

    The columns ``lo`` to ``hi`` lack the same variables. ``y`` (k + 1, >= hi) is W times the
    distances from the mean, with 0 for entries that are missing or left out. Their values would
    move y along their columns of W. So the distance of the other entries is what remains of y
    orthogonal to these columns. Returns the length of column ``a`` orthogonal to the columns of
    missing entries; the last row of ``y`` becomes the part of y along it. ``vectors`` (> d, d) is
    scratch.
    """
    k, scope = nodes[i]["n_scope"], nodes[i]["scope"]
    whitening = nodes[i]["stats"] + moments_length(k)
    log_norm, n, length = nodes[i]["log_norm"], 0, 1.0
    for b in range(k):
        x = Z[scopes[scope + b], lo]
        if x != x and b != a:
            length = add_direction(stats, whitening + b, k, vectors, n)
            log_norm += 0.5 * LOG_2PI - log_positive(length)
            n += 1
    if a != NONE:
        length = add_direction(stats, whitening + a, k, vectors, n)
        log_norm += 0.5 * LOG_2PI - log_positive(length)
        n += 1
    last = len(vectors) - 1
    for r in range(lo, hi):
        for c in range(k):
            vectors[last, c] = y[c, r]
        for direction in range(n):
            y[k, r] = subtract_part(vectors, last, direction, k)
        density[r] = 0.0
        if n < k:
            density[r] = log_norm - 0.5 * scalar_product(vectors, last, last, k)
    return length


@kernel
def add_direction(stats: Array, column: int, k: int, vectors: Array, n: int) -> float:
    """Append a column of W, which begins at offset ``column``, to ``n`` orthogonal directions.

    Returns the length of the column orthogonal to the others.
    """
    for c in range(k):
        vectors[n, c] = stats[column + c * k]
    for other in range(n):
        subtract_part(vectors, n, other, k)
    length = math.sqrt(scalar_product(vectors, n, n, k))
    for c in range(k):
        vectors[n, c] /= length
    return length


@kernel
def subtract_part(vectors: Array, i: int, direction: int, k: int) -> float:
    """Make a vector orthogonal to a direction of length 1; return the length of what it loses."""
    along = scalar_product(vectors, i, direction, k)
    for c in range(k):
        vectors[i, c] = fma(-along, vectors[direction, c], vectors[i, c])
    return along


@kernel
def scalar_product(vectors: Array, i: int, j: int, k: int) -> float:
    """Return the scalar product of two vectors of ``k`` entries."""
    total = 0.0
    for c in range(k):
        total = fma(vectors[i, c], vectors[j, c], total)
    return total
