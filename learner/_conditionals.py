"""Kernels of multivariate leaves in the downward pass: each variable given the leaf's others."""

from __future__ import annotations

import numpy as np

from ._gaussian import LOG_2PI, observed_densities, whiten
from ._jit import kernel
from ._layout import Array
from ._math import fma, log_positive
from ._mixtures import CENTRE, MEAN, SPREAD, add_component

FAR = 1e12
"""Squared distance from a leaf, in standard deviations, from which on an entry is not left out by
taking it away again: what is left of the others would be lost in its rounding."""


@kernel
def add_conditionals(
    i: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    down: Array,
    weights: Array,
    component: Array,
    scratch: Array,
    vectors: Array,
    ends: Array,
    mixtures: Array,
) -> None:
    """Merge a multivariate leaf's Gaussians, of each variable given its other ones.

    ``scratch`` (> 2 k + 1, m) holds sums, the distances from the mean, and y; ``vectors`` is
    (> d, d). Rows that lack entries, or are far, are told for each entry apart what the others say.
    """
    k, scope, block = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    W = stats[block + k * (k + 2) : block + k * (2 * k + 2)].reshape((k, k))
    sums, dx, y = scratch[0], scratch[1 : k + 1], scratch[k + 1 : 2 * k + 2]
    for a in range(k):
        variable, mean = scopes[scope + a], stats[block + a]
        for r in range(m):
            dx[a, r] = Z[variable, r] - mean
    whiten_all(W, scratch, y, m)
    runs = np.empty((m, 2), np.int64)
    n_runs = list_irregular(sums, m, ends, runs)
    for r in range(m):
        sums[r] = 0.0
    for a in range(k):
        leave_out(W, a, dx, y, m, nodes[i]["log_norm"], down, sums, weights[0], component)
        for lo, hi in runs[:n_runs]:
            whiten_others(W, a, dx, lo, hi, y)
            length = observed_densities(
                i, a, nodes, scopes, stats, Z, lo, hi, y, vectors, weights[0]
            )
            for r in range(lo, hi):
                weights[0, r] += down[r]
                component[CENTRE, r] = -y[k, r] / length
                component[SPREAD, r] = 1.0 / (length * length)
        for r in range(m if len(mixtures) > MEAN else 0):
            component[CENTRE, r] += stats[block + a]
        add_component(scopes[scope + a], weights, 0, component, m, mixtures)


@kernel
def whiten_all(W: Array, scratch: Array, y: Array, m: int) -> None:
    """Fill ``y`` (>= k, m) with W times the distances, which follow the first row of ``scratch``.

    That row becomes the squared length of each column of y.
    """
    for c in range(len(W)):
        whiten(W[c, : c + 1], scratch, m)
        for r in range(m):
            y[c, r] = scratch[0, r]
    for r in range(m):
        scratch[0, r] = 0.0
    for c in range(len(W)):
        for r in range(m):
            scratch[0, r] = fma(y[c, r], y[c, r], scratch[0, r])


@kernel
def list_irregular(length: Array, m: int, ends: Array, runs: Array) -> int:
    """List in ``runs`` (m, 2) where rows that lack entries or are far begin and end.

    Those of one run lack the same entries. ``length`` (m,) are squared distances, NaN where
    entries are missing. Returns the number of runs.
    """
    n, lo = 0, 0
    while lo < m:
        hi = lo + 1
        if not length[lo] < FAR:
            end = ends[lo] if len(ends) > 0 else m
            while hi < end and not length[hi] < FAR:
                hi += 1
            runs[n, 0], runs[n, 1] = lo, hi
            n += 1
        lo = hi
    return n


@kernel
def whiten_others(W: Array, a: int, dx: Array, lo: int, hi: int, y: Array) -> None:
    """Fill ``y[:, lo:hi]`` with W times what those rows, which lack the same, have but ``a``."""
    for r in range(lo, hi):
        for c in range(len(W)):
            y[c, r] = 0.0
            for b in range(c + 1):
                if dx[b, r] == dx[b, r] and b != a:
                    y[c, r] = fma(W[c, b], dx[b, r], y[c, r])


@kernel
def leave_out(
    W: Array,
    a: int,
    dx: Array,
    y: Array,
    m: int,
    log_norm: float,
    down: Array,
    above: Array,
    log_weight: Array,
    component: Array,
) -> None:
    """Fill ``log_weight`` (m,) with ``down`` times the density of all entries but ``a``.

    ``component`` becomes what they say about ``a``, from the leaf's mean. Leaving out moves ``y``
    (>= k, m) along column ``a`` of W, which begins at row ``a``: ``above`` (m,) is the squared
    length of what lies above, and is moved on by one row.
    """
    precision = 0.0
    for c in range(a, len(W)):
        precision += W[c, a] * W[c, a]
    log_norm += 0.5 * (LOG_2PI - log_positive(precision))
    spread = 1.0 / precision
    for r in range(m):
        component[CENTRE, r], component[SPREAD, r], log_weight[r] = 0.0, spread, above[r]
    for c in range(a, len(W)):
        factor = W[c, a] * spread
        for r in range(m):
            component[CENTRE, r] = fma(factor, y[c, r], component[CENTRE, r])
    for c in range(a, len(W)):
        factor = -W[c, a]
        for r in range(m):
            left = fma(factor, component[CENTRE, r], y[c, r])
            log_weight[r] = fma(left, left, log_weight[r])
    for r in range(m):
        log_weight[r] = down[r] + fma(-0.5, log_weight[r], log_norm)
        component[CENTRE, r] = dx[a, r] - component[CENTRE, r]
        above[r] = fma(y[a, r], y[a, r], above[r])
