"""Kernels of the running averages: means, covariances and the cached densities of leaves.

All of them take the rows ``rows[lo:hi]`` of ``Z`` and skip missing values (NaN): a mean uses the
rows where its variable was observed, a covariance those where both were.
"""

from __future__ import annotations

import math

import numpy as np

from ._gaussian import LOG_2PI
from ._jit import kernel
from ._lanes import WIDTH, choose, fma, load, padded, spread, store
from ._layout import FREE, LEAF, NIL, NODES_TOP, SUM, Array
from ._math import log_positive

SMALLEST_VARIANCE = 1e-30
"""Keeps densities finite when a leaf without a floor has seen one value only."""

SINGULAR_RIDGE = 1e-4
"""Added for good to the diagonal of a singular leaf covariance (authors' implementation)."""

SINGULAR_RATIO = 2.2e-10
"""A pivot below this share of the largest variance counts as zero (a million roundings)."""


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
def refresh_leaf(i: int, nodes: Array, variance_floor: float) -> None:
    """Recompute what a univariate leaf's density needs from its variance."""
    variance = max(nodes[i]["variance"], variance_floor, SMALLEST_VARIANCE)
    nodes[i]["precision"] = 1.0 / variance
    nodes[i]["log_norm"] = -0.5 * (LOG_2PI + log_positive(variance))


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


@kernel
def refresh_multivariate(i: int, nodes: Array, stats: Array, variance_floor: float) -> None:
    """Recompute what a multivariate leaf's density needs from its covariance.

    The floor is added to the diagonal. A covariance that is singular all the same gets
    SINGULAR_RIDGE for good, or as much more as its size asks for.
    """
    k, block = nodes[i]["n_scope"], nodes[i]["stats"]
    whitening = block + k * (k + 2)
    ridge = SINGULAR_RIDGE
    while not factorise(stats, block, k, variance_floor):
        for a in range(k):
            stats[block + 2 * k + a * k + a] += ridge
        ridge *= 2.0
    log_norm = -0.5 * k * LOG_2PI
    for a in range(k):
        log_norm -= math.log(stats[whitening + a * k + a])
    invert_factor(stats, whitening, k)
    nodes[i]["log_norm"] = log_norm
    nodes[i]["variance"] = variance_floor


@kernel
def factorise(stats: Array, block: int, k: int, variance_floor: float) -> bool:
    """Write the lower Cholesky factor into the place of the whitening matrix; False if singular."""
    covariance, factor = block + 2 * k, block + k * (k + 2)
    largest = 0.0
    for a in range(k):
        largest = max(largest, stats[covariance + a * k + a] + variance_floor)
    for a in range(k):
        for b in range(a + 1):
            value = stats[covariance + b * k + a]
            if a == b:
                value += variance_floor
            for c in range(b):
                value -= stats[factor + a * k + c] * stats[factor + b * k + c]
            if b < a:
                stats[factor + a * k + b] = value / stats[factor + b * k + b]
            elif value > SINGULAR_RATIO * largest:
                stats[factor + a * k + a] = math.sqrt(value)
            else:
                return False
    return True


@kernel
def invert_factor(stats: Array, factor: int, k: int) -> None:
    """Invert a lower triangular matrix in place, column by column."""
    for b in range(k):
        stats[factor + b * k + b] = 1.0 / stats[factor + b * k + b]
        for a in range(b + 1, k):
            value = 0.0
            for c in range(b, a):
                value -= stats[factor + a * k + c] * stats[factor + c * k + b]
            stats[factor + a * k + b] = value / stats[factor + a * k + a]


@kernel
def forget(header: Array, nodes: Array, edges: Array, stats: Array, keep: float) -> None:
    """Let every count, and with it the weight of the past, shrink to the share ``keep``."""
    for i in range(header[NODES_TOP]):
        kind = nodes[i]["kind"]
        if kind == FREE:
            continue
        nodes[i]["count"] *= keep
        nodes[i]["observed"] *= keep
        if kind == SUM:
            edge = nodes[i]["first_edge"]
            while edge != NIL:
                edges[edge]["weight"] = (edges[edge]["weight"] - 1.0) * keep + 1.0
                edge = edges[edge]["next"]
        elif kind != LEAF:
            k, block = nodes[i]["n_scope"], nodes[i]["stats"]
            for a in range(k):
                stats[block + k + a] *= keep
                for b in range(a):
                    stats[block + 2 * k + a * k + b] *= keep
