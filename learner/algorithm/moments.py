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
    scratch = np.zeros((m + k + 1, padded(max(k, 2))))
    for a in range(k):
        values, rows = Z[scopes[scope + a]], segments[lo:hi]
        for t in range(m):
            scratch[t, a] = values[rows[t]]
    centre(stats, offset, k, m, scratch)
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
def centre(stats: Array, offset: int, k: int, m: int, scratch: Array) -> None:
    """Move the means of a node's statistics by the first ``m`` rows of ``scratch`` (., >= k).

    These become the distances from the new means, 0 for missing values. The next two rows are
    scratch; row m + k gets how far each mean has moved.
    """
    for b in range(0, k, WIDTH):
        total, seen = spread(0.0), spread(0.0)
        for t in range(m):
            x = load(scratch, t, b)
            total, seen = total + choose(x == x, x, 0.0), seen + choose(x == x, 1.0, 0.0)
        store(scratch, m, b, total)
        store(scratch, m + 1, b, seen)
        for a in range(b, min(b + WIDTH, k)):
            mean, n = stats[offset + a], stats[offset + k + a]
            if scratch[m + 1, a] > 0.0:
                mean = (n * mean + scratch[m, a]) / (n + scratch[m + 1, a])
            scratch[m + k, a] = mean - stats[offset + a]
            scratch[m, a] = stats[offset + a] = mean
        means = load(scratch, m, b)
        for t in range(m):
            dx = load(scratch, t, b) - means
            store(scratch, t, b, choose(dx == dx, dx, 0.0))


@kernel
def multiply_pairs(scratch: Array, m: int, k: int) -> None:
    """Compute X^T X on and above the diagonal for X (m, k), the first ``m`` rows of ``scratch``.

    The next ``k`` rows take the result. Entries below the diagonal or past column k mean nothing.
    """
    for b in range(0, k, WIDTH):
        end = min(b + WIDTH, k)
        for a in range(0, end, 2):  # two at a time, as one alone waits for its own operations
            other, one, two = min(a + 1, end - 1), spread(0.0), spread(0.0)
            for t in range(m):
                x = load(scratch, t, b)
                one, two = fma(x, scratch[t, a], one), fma(x, scratch[t, other], two)
            store(scratch, m + a, b, one)
            store(scratch, m + other, b, two)


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
