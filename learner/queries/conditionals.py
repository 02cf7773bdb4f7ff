"""Kernels of multivariate leaves in the downward pass: each variable given the leaf's others."""

from __future__ import annotations

import numpy as np

from ..network.leaves import LOG_2PI, whitened
from ..network.marginals import observed_densities
from ..vector.compiler import Array, kernel
from ..vector.lanes import WIDTH, aligned_stack, all_below, choose, fma, load, spread, store
from ..vector.math import log_positive
from .mixtures import add_component

SQUARED, LOG_WEIGHT, CENTRE, SPREAD, DISTANCES = range(5)
"""Rows of ``scratch``: squared distances from the leaf; weight, mean and variance of a component;
and from which row on there are d distances of the entries and, below them, d + 1 rows of y."""


SCRATCH = DISTANCES + 1
"""Rows of ``scratch`` beside twice the variables."""


FAR = 1e6
"""Squared distance from a leaf, in standard deviations, from which on an entry is not left out by
taking it away: rounding would be off by more than 1e-10 in what is left of the others."""


@kernel
def add_conditionals(
    i: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    downs: Array,
    row: int,
    log_weight: float,
    scratch: Array,
    vectors: Array,
    ends: Array,
    mixtures: Array,
) -> None:
    """Merge a multivariate leaf's Gaussians, of each variable given its other ones.

    The leaf's log-derivatives are a row of ``downs`` and a number. ``scratch`` (2 d + SCRATCH, .)
    and ``vectors`` (> d, d) are what they say. Leaving an entry out moves y along its column of W:
    what lies along it is taken from the squared distance. Rows that lack entries, or are far, are
    told for each entry apart what the others say.
    """
    aligned_stack()
    d, k = Z.shape[0], nodes[i]["n_scope"]
    scope, block = nodes[i]["scope"], nodes[i]["stats"]
    W, entries = block + k * (k + 2), np.empty((k, 2))
    describe_entries(stats, W, k, nodes[i]["log_norm"], entries)
    for r in range(0, m, WIDTH):
        for a in range(k):
            dx = load(Z, scopes[scope + a], r) - stats[block + a]
            store(scratch, DISTANCES + a, r, dx)
        regular = whiten_all(stats, W, k, d, scratch, r)
        down = load(downs, row, r) + log_weight
        for a in range(k):
            # along column a of W, which begins at row a
            along = spread(0.0)
            for c in range(a, k):
                along = fma(stats[W + c * k + a], load(scratch, DISTANCES + d + c, r), along)
            variance = spread(entries[a, 0])
            offset = along * variance
            others = load(scratch, SQUARED, r) - along * offset
            component = down + fma(-0.5, others, entries[a, 1])
            centre = load(scratch, DISTANCES + a, r) - offset
            if not regular:
                store(scratch, LOG_WEIGHT, r, component)
                store(scratch, CENTRE, r, centre)
                store(scratch, SPREAD, r, variance)
                tell_irregular(
                    i, a, nodes, scopes, stats, Z, r, min(r + WIDTH, m), downs, row, log_weight,
                    scratch, vectors, ends,
                )  # fmt: skip
                component, centre = load(scratch, LOG_WEIGHT, r), load(scratch, CENTRE, r)
                variance = load(scratch, SPREAD, r)
            centre = centre + stats[block + a]
            add_component(scopes[scope + a], r, component, centre, variance, d, mixtures)


@kernel
def describe_entries(stats: Array, W: int, k: int, log_norm: float, entries: Array) -> None:
    """Fill ``entries`` (k, 2) with each entry's variance given the others, and their constant.

    The whitening matrix begins at ``W``.
    """
    for a in range(k):
        precision = 0.0
        for c in range(a, k):
            precision += stats[W + c * k + a] * stats[W + c * k + a]
        entries[a, 0] = 1.0 / precision
        entries[a, 1] = log_norm + 0.5 * (LOG_2PI - log_positive(precision))


@kernel
def whiten_all(stats: Array, W: int, k: int, d: int, scratch: Array, r: int) -> bool:
    """Fill y with W times the distances; say whether no row lacks entries or is far."""
    squared = spread(0.0)
    for c in range(k):
        y = whitened(stats, W + c * k, c + 1, scratch, DISTANCES, r)
        store(scratch, DISTANCES + d + c, r, y)
        squared = fma(y, y, squared)
    store(scratch, SQUARED, r, squared)
    return all_below(choose(squared == squared, squared, np.inf), FAR)


@kernel
def tell_irregular(
    i: int,
    a: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    lo: int,
    end: int,
    downs: Array,
    row: int,
    log_weight: float,
    scratch: Array,
    vectors: Array,
    ends: Array,
) -> None:
    """Put the components of those of the rows ``lo`` to ``end`` right that lack entries or are far.

    ``ends`` tells for each row where those that lack the same entries end; empty if none lacks any.
    """
    d, k = Z.shape[0], nodes[i]["n_scope"]
    dx, y = scratch[DISTANCES : DISTANCES + k], scratch[DISTANCES + d : DISTANCES + d + k + 1]
    W = nodes[i]["stats"] + k * (k + 2)
    while lo < end:
        hi = lo + 1
        if not scratch[SQUARED, lo] < FAR:
            same = min(end, ends[lo]) if len(ends) > 0 else end
            while hi < same and not scratch[SQUARED, hi] < FAR:
                hi += 1
            whiten_others(stats, W, k, a, dx, lo, hi, y)
            length = observed_densities(
                i, a, nodes, scopes, stats, Z, lo, hi, y, vectors, scratch[LOG_WEIGHT]
            )
            for r in range(lo, hi):
                scratch[LOG_WEIGHT, r] += downs[row, r] + log_weight
                scratch[CENTRE, r] = -y[k, r] / length
                scratch[SPREAD, r] = 1.0 / (length * length)
        lo = hi


@kernel
def whiten_others(
    stats: Array, W: int, k: int, a: int, dx: Array, lo: int, hi: int, y: Array
) -> None:
    """Fill ``y[:, lo:hi]`` with W times what those rows, which lack the same, have but ``a``."""
    for r in range(lo, hi):
        for c in range(k):
            y[c, r] = 0.0
            for b in range(c + 1):
                if dx[b, r] == dx[b, r] and b != a:
                    y[c, r] = fma(stats[W + c * k + b], dx[b, r], y[c, r])
