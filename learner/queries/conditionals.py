"""Multivariate leaves in the downward pass: each variable given the other ones of the leaf."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.density.mixtures import add_component
from faust_oslrau.learner.network.layout import Pools, moments_length
from faust_oslrau.learner.network.leaves import LOG_2PI, whitened
from faust_oslrau.learner.network.marginals import observed_densities
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    aligned_stack,
    all_below,
    choose,
    fma,
    load,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import log_positive

DOWN, SQUARED, LOG_WEIGHT, CENTRE, SPREAD, DISTANCES = range(6)
"""Rows of ``scratch``: the log-derivative of the leaf; squared distances from it; weight, mean and
variance of one component; and the first of d rows of distances of the entries from their means.
Behind these lie d + 1 rows of y."""

SCRATCH = DISTANCES + 1
"""Rows of ``scratch`` in addition to twice the variables."""

FAR_SQUARED = 1e6
"""Squared distance from a leaf, in standard deviations, from which on entries are not left out by
downdating: rounding would cost more than 1e-10 of what remains of the others."""


@kernel
def add_conditionals(
    pools: Pools,
    i: int,
    Z: Array,
    m: int,
    scratch: Array,
    vectors: Array,
    ends: Array,
    mixtures: Array,
) -> None:
    """Add the Gaussian of each of a multivariate leaf's variables given its other ones.

    The first row of ``scratch`` (2 d + SCRATCH, .) holds the log-derivatives of the root with
    respect to the leaf; ``vectors`` (> d, d) is scratch, and ``ends`` comes from `ends_of_runs`.

    An entry is left out by downdating: its value moves y along its column of W, so the part of y
    along that column is subtracted from the squared distance. Rows that lack entries or are far
    from the leaf are computed without the entry from the start.
    """
    nodes, scopes, stats = pools.nodes, pools.scopes, pools.stats
    aligned_stack()
    d, k = Z.shape[0], nodes[i]["n_scope"]
    scope, offset = nodes[i]["scope"], nodes[i]["stats"]
    W, entries = offset + moments_length(k), np.empty((k, 2))
    describe_entries(stats, W, k, nodes[i]["log_norm"], entries)
    for r in range(0, m, WIDTH):
        for a in range(k):
            dx = load(Z, scopes[scope + a], r) - stats[offset + a]
            store(scratch, DISTANCES + a, r, dx)
        regular = whiten_all(stats, W, k, d, scratch, r)
        down = load(scratch, DOWN, r)
        for a in range(k):
            # along column a of W, which begins at row a
            along = spread(0.0)
            for c in range(a, k):
                along = fma(stats[W + c * k + a], load(scratch, DISTANCES + d + c, r), along)
            variance = spread(entries[a, 0])
            shift = along * variance
            others = load(scratch, SQUARED, r) - along * shift
            component = down + fma(-0.5, others, entries[a, 1])
            centre = load(scratch, DISTANCES + a, r) - shift
            if not regular:
                store(scratch, LOG_WEIGHT, r, component)
                store(scratch, CENTRE, r, centre)
                store(scratch, SPREAD, r, variance)
                leave_out_directly(pools, i, a, Z, r, min(r + WIDTH, m), scratch, vectors, ends)
                component, centre = load(scratch, LOG_WEIGHT, r), load(scratch, CENTRE, r)
                variance = load(scratch, SPREAD, r)
            centre = centre + stats[offset + a]
            add_component(scopes[scope + a], r, component, centre, variance, d, mixtures)


@kernel
def describe_entries(stats: Array, W: int, k: int, log_norm: float, entries: Array) -> None:
    """Fill ``entries`` (k, 2) with each entry's variance given the others, and its constant.

    The whitening matrix begins at offset ``W``.
    """
    for a in range(k):
        precision = 0.0
        for c in range(a, k):
            precision += stats[W + c * k + a] * stats[W + c * k + a]
        entries[a, 0] = 1.0 / precision
        entries[a, 1] = log_norm + 0.5 * (LOG_2PI - log_positive(precision))


@kernel
def whiten_all(stats: Array, W: int, k: int, d: int, scratch: Array, r: int) -> bool:
    """Fill y with W times the distances; return whether no row lacks entries or is far."""
    squared = spread(0.0)
    for c in range(k):
        y = whitened(stats, W + c * k, c + 1, scratch, DISTANCES, r)
        store(scratch, DISTANCES + d + c, r, y)
        squared = fma(y, y, squared)
    store(scratch, SQUARED, r, squared)
    return all_below(choose(squared == squared, squared, np.inf), FAR_SQUARED)


@kernel
def leave_out_directly(
    pools: Pools,
    i: int,
    a: int,
    Z: Array,
    lo: int,
    end: int,
    scratch: Array,
    vectors: Array,
    ends: Array,
) -> None:
    """Correct the components of those of the rows ``lo`` to ``end`` that lack entries or are far.

    They are computed from the other observed entries, without entry ``a`` from the start.
    """
    _, nodes, _, scopes, stats = pools
    d, k = Z.shape[0], nodes[i]["n_scope"]
    dx, y = scratch[DISTANCES : DISTANCES + k], scratch[DISTANCES + d : DISTANCES + d + k + 1]
    W = nodes[i]["stats"] + moments_length(k)
    while lo < end:
        hi = lo + 1
        if not scratch[SQUARED, lo] < FAR_SQUARED:
            same = min(end, ends[lo]) if len(ends) > 0 else end
            while hi < same and not scratch[SQUARED, hi] < FAR_SQUARED:
                hi += 1
            whiten_others(stats, W, k, a, dx, lo, hi, y)
            length = observed_densities(
                i, a, nodes, scopes, stats, Z, lo, hi, y, vectors, scratch[LOG_WEIGHT]
            )
            for r in range(lo, hi):
                scratch[LOG_WEIGHT, r] += scratch[DOWN, r]
                scratch[CENTRE, r] = -y[k, r] / length
                scratch[SPREAD, r] = 1.0 / (length * length)
        lo = hi


@kernel
def whiten_others(
    stats: Array, W: int, k: int, a: int, dx: Array, lo: int, hi: int, y: Array
) -> None:
    """Fill ``y[:, lo:hi]`` with W times the distances of the observed entries but ``a``."""
    for r in range(lo, hi):
        for c in range(k):
            y[c, r] = 0.0
            for b in range(c + 1):
                if dx[b, r] == dx[b, r] and b != a:
                    y[c, r] = fma(stats[W + c * k + b], dx[b, r], y[c, r])
