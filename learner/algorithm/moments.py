"""Equations 3 and 4: running averages of means, variances and covariances.

All kernels take the rows ``rows[lo:hi]`` of ``Z`` and skip missing values (NaN): a mean uses the
rows where its variable was observed, a covariance those where both were.
"""

from __future__ import annotations

import numpy as np

from ..network.leaves import refresh_leaf
from ..vector.compiler import Array, kernel
from ..vector.lanes import WIDTH, choose, fma, load, padded, spread, store


@kernel
def update_leaf(
    i: int, nodes: Array, Z: Array, rows: Array, lo: int, hi: int, variance_floor: float
) -> None:
    """Equations 3 and 4 for one variable; the first update counts the initial mean as one value.

    The variance is summed about the new mean, so that it cannot turn negative by rounding.
    """
    variable = nodes[i]["scope"]
    m, total = 0, 0.0
    for t in range(lo, hi):
        x = Z[variable, rows[t]]
        if x == x:
            m += 1
            total += x
    if m == 0:
        return
    n = max(nodes[i]["observed"], 1.0)
    share = 1.0 / (n + m)
    mean = (n * nodes[i]["mean"] + total) * share
    shift = mean - nodes[i]["mean"]
    squares = n * (nodes[i]["variance"] + shift * shift)
    for t in range(lo, hi):
        dx = Z[variable, rows[t]] - mean
        if dx == dx:
            squares += dx * dx
    nodes[i]["mean"] = mean
    nodes[i]["variance"] = squares * share
    nodes[i]["observed"] += m
    refresh_leaf(i, nodes, variance_floor)


@kernel
def update_moments(
    stats: Array,
    block: int,
    scopes: Array,
    scope: int,
    k: int,
    Z: Array,
    rows: Array,
    lo: int,
    hi: int,
    complete: bool,
) -> None:
    """Equations 3 and 4 for the mean vector and covariance matrix of a block of statistics.

    Leaves the counts alone: a structure update wants those from before the batch. ``complete``
    says that no value is missing.
    """
    m = hi - lo
    squares, shift = m, m + k
    scratch = np.empty((m + k + 1, padded(max(k, 2))))
    for a in range(k):
        before = stats[block + a]
        stats[block + a] = centre(
            stats, block + a, k, Z, scopes[scope + a], rows, lo, m, scratch, a
        )
        scratch[shift, a] = stats[block + a] - before
    multiply_pairs(scratch, m, k)
    matrix = block + 2 * k
    if complete and counts_alike(stats, block, k):
        n = stats[block + k]
        share = 1.0 / (n + m)
        keep = n * share
        for a in range(k):
            at, moved = matrix + a * k, scratch[shift, a]
            for b in range(a, k):
                old = stats[at + b] + moved * scratch[shift, b]
                stats[at + b] = keep * old + share * scratch[squares + a, b]
        return
    for a in range(k):
        for b in range(a, k):
            n = stats[block + k + a] if a == b else stats[matrix + b * k + a]
            pairs = (
                m
                if complete
                else count_pairs(Z, scopes[scope + a], scopes[scope + b], rows, lo, hi)
            )
            at = matrix + a * k + b
            old = n * (stats[at] + scratch[shift, a] * scratch[shift, b])
            total = old + scratch[squares + a, b]
            stats[at] = total / (n + pairs) if n + pairs > 0 else 0.0


@kernel
def centre(
    stats: Array,
    at: int,
    k: int,
    Z: Array,
    variable: int,
    rows: Array,
    lo: int,
    m: int,
    scratch: Array,
    a: int,
) -> float:
    """Return the new mean of a variable, whose old one is ``stats[at]``.

    Column ``a`` of ``scratch`` takes the distances of ``m`` values from it, 0 for missing ones.
    """
    seen, total = 0, 0.0
    for t in range(m):
        x = Z[variable, rows[lo + t]]
        scratch[t, a] = x
        if x == x:
            seen += 1
            total += x
    mean: float = stats[at]
    if seen > 0:
        mean = (stats[at + k] * mean + total) / (stats[at + k] + seen)
    for t in range(m):
        dx = scratch[t, a] - mean
        scratch[t, a] = choose(dx == dx, dx, 0.0)
    return mean


@kernel
def multiply_pairs(scratch: Array, m: int, k: int) -> None:
    """Fill the next ``k`` rows with X^T X of the first ``m``, (m, k), at and above the diagonal.

    Variables lie side by side; what is left of the diagonal or beyond them means nothing.
    """
    for t in range(m):
        scratch[t, k:] = 0.0
    for b in range(0, k, WIDTH):
        for a in range(min(b + WIDTH, k)):
            total = spread(0.0)
            for t in range(m):
                total = fma(load(scratch, t, b), scratch[t, a], total)
            store(scratch, m + a, b, total)


@kernel
def counts_alike(stats: Array, block: int, k: int) -> bool:
    """Whether all variables and pairs of a block were observed as often."""
    n, alike = stats[block + k], True
    for a in range(k):
        alike &= stats[block + k + a] == n
        for b in range(a):
            alike &= stats[block + 2 * k + a * k + b] == n
    return alike


@kernel
def count_pairs(Z: Array, v: int, w: int, rows: Array, lo: int, hi: int) -> int:
    """Rows in which both variables were observed."""
    pairs = 0
    for t in range(lo, hi):
        x, y = Z[v, rows[t]], Z[w, rows[t]]
        pairs += x == x and y == y
    return pairs


@kernel
def add_counts(
    stats: Array,
    block: int,
    scopes: Array,
    scope: int,
    k: int,
    Z: Array,
    rows: Array,
    lo: int,
    hi: int,
    complete: bool,
) -> None:
    """Add the batch to the counts of observed values and pairs of a block of statistics."""
    matrix = block + 2 * k
    for a in range(k):
        for b in range(a + 1):
            pairs = (
                hi - lo
                if complete
                else count_pairs(Z, scopes[scope + a], scopes[scope + b], rows, lo, hi)
            )
            if a == b:
                stats[block + k + a] += pairs
            else:
                stats[matrix + a * k + b] += pairs
