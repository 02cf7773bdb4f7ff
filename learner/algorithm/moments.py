"""Equations 3 and 4: running averages of means, variances and covariances.

All kernels take the rows of one segment and skip missing values (NaN): a mean uses the rows in
which its variable was observed, a covariance those in which both variables were.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.network.leaves import refresh_leaf
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, choose, fma, load, padded, spread, store


@kernel
def update_leaf(
    i: int, nodes: Array, Z: Array, segments: Array, lo: int, hi: int, variance_floor: float
) -> None:
    """Equations 3 and 4 for one variable. The first update counts the initial mean as one value.

    The variance is computed about the new mean, so that rounding cannot make it negative.
    """
    variable = nodes[i]["scope"]
    m, total = 0, 0.0
    for t in range(lo, hi):
        x = Z[variable, segments[t]]
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
        dx = Z[variable, segments[t]] - mean
        if dx == dx:
            squares += dx * dx
    nodes[i]["mean"] = mean
    nodes[i]["variance"] = squares * share
    nodes[i]["observed"] += m
    refresh_leaf(i, nodes, variance_floor)


@kernel
def update_moments(
    i: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    segments: Array,
    lo: int,
    hi: int,
    complete: bool,
) -> None:
    """Equations 3 and 4 for the mean vector and covariance matrix of a node's statistics.

    The counts stay as they are: a structure update needs those from before the mini-batch.
    """
    k, scope, offset = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    m = hi - lo
    squares, shift = m, m + k
    scratch = np.empty((m + k + 1, padded(max(k, 2))))
    for a in range(k):
        before = stats[offset + a]
        stats[offset + a] = centre(
            stats, offset + a, k, Z, scopes[scope + a], segments, lo, m, scratch, a
        )
        scratch[shift, a] = stats[offset + a] - before
    multiply_pairs(scratch, m, k)
    matrix = offset + 2 * k
    if complete and counts_alike(stats, offset, k):
        n = stats[offset + k]
        share = 1.0 / (n + m)
        old_share = n * share
        for a in range(k):
            at, moved = matrix + a * k, scratch[shift, a]
            for b in range(a, k):
                old = stats[at + b] + moved * scratch[shift, b]
                stats[at + b] = old_share * old + share * scratch[squares + a, b]
        return
    for a in range(k):
        for b in range(a, k):
            n = stats[offset + k + a] if a == b else stats[matrix + b * k + a]
            pairs = m
            if not complete:
                pairs = count_pairs(Z, scopes[scope + a], scopes[scope + b], segments, lo, hi)
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
    segments: Array,
    lo: int,
    m: int,
    scratch: Array,
    a: int,
) -> float:
    """Return the new mean of a variable, whose old mean is ``stats[at]``.

    Column ``a`` of ``scratch`` gets the distances of ``m`` values from it, 0 for missing ones.
    """
    seen, total = 0, 0.0
    for t in range(m):
        x = Z[variable, segments[lo + t]]
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
    """Compute X^T X on and above the diagonal for X (m, k), the first ``m`` rows of ``scratch``.

    The next ``k`` rows take the result. Entries below the diagonal or past column k mean nothing.
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
def counts_alike(stats: Array, offset: int, k: int) -> bool:
    """Whether all variables and pairs of variables were observed equally often."""
    n, alike = stats[offset + k], True
    for a in range(k):
        alike &= stats[offset + k + a] == n
        for b in range(a):
            alike &= stats[offset + 2 * k + a * k + b] == n
    return alike


@kernel
def count_pairs(Z: Array, v: int, w: int, segments: Array, lo: int, hi: int) -> int:
    """Count the rows of a segment in which both variables were observed."""
    pairs = 0
    for t in range(lo, hi):
        x, y = Z[v, segments[t]], Z[w, segments[t]]
        pairs += x == x and y == y
    return pairs


@kernel
def add_counts(
    i: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    segments: Array,
    lo: int,
    hi: int,
    complete: bool,
) -> None:
    """Add a segment to the counts of observed values and pairs in a node's statistics."""
    k, scope, offset = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    matrix = offset + 2 * k
    for a in range(k):
        for b in range(a + 1):
            pairs = hi - lo
            if not complete:
                pairs = count_pairs(Z, scopes[scope + a], scopes[scope + b], segments, lo, hi)
            if a == b:
                stats[offset + k + a] += pairs
            else:
                stats[matrix + a * k + b] += pairs
