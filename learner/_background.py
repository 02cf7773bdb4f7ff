"""The background: one Gaussian over all variables, and wider ones of its shape for the tails.

A sum node, the root's first child. Every record updates the Gaussian's mean and covariance; the
others take them over, so that the background has the heavy tails of its stream: their weights are
learned by online EM.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from ._layout import (
    BACKGROUND,
    MULTIVARIATE_LEAF,
    NIL,
    SUM,
    UNSEEN,
    Array,
    block_length,
    product_block,
)
from ._math import exp_nonpositive
from ._moments import add_counts, refresh_multivariate, update_moments
from ._structure import add_edge, new_block, new_node

WIDENINGS = np.array([1.0, 2.0, 4.0, 8.0])
"""Deviations of the Gaussians, as multiples of the first one's."""

BACKGROUND_NODES = 1 + len(WIDENINGS)
"""The sum and its Gaussians."""


def add_background(
    header: Array, nodes: Array, edges: Array, stats: Array, d: int, variance_floor: float
) -> int:
    """Add a background N(0, I) over ``d`` variables, which counts as one observation."""
    background = new_node(header, nodes, SUM, 0, d, NIL)
    for widening in WIDENINGS:
        leaf = new_node(header, nodes, MULTIVARIATE_LEAF, 0, d, background)
        nodes[leaf]["stats"] = new_block(header, stats, block_length(MULTIVARIATE_LEAF, d))
        add_edge(header, nodes, edges, background, leaf, 1.0 if widening == 1.0 else UNSEEN)
    header[BACKGROUND] = background
    start = nodes[edges[nodes[background]["first_edge"]]["child"]]["stats"]
    stats[start + d : start + 2 * d] = 1.0
    matrix = stats[start + 2 * d : start + product_block(d)].reshape(d, d)
    matrix[:] = np.tril(np.ones((d, d)))  # variances and pair counts 1, covariances 0
    refresh_background(header, nodes, edges, stats, variance_floor)
    return background


@kernel
def update_background(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    values: Array,
    rows: Array,
    m: int,
    complete: bool,
    variance_floor: float,
) -> None:
    """Learn the mini-batch ``Z`` (d, >= m), whose densities are in ``values``."""
    leaf = first_gaussian(header, nodes, edges)
    k, scope, block = nodes[leaf]["n_scope"], nodes[leaf]["scope"], nodes[leaf]["stats"]
    if leaf != header[BACKGROUND]:
        weigh(header[BACKGROUND], nodes, edges, values, m)
    update_moments(stats, block, scopes, scope, k, Z, rows, 0, m, complete)
    add_counts(stats, block, scopes, scope, k, Z, rows, 0, m, complete)
    nodes[leaf]["count"] += m
    refresh_background(header, nodes, edges, stats, variance_floor)


@kernel
def first_gaussian(header: Array, nodes: Array, edges: Array) -> int:
    """Return the one that learns; in a state of format 1 it is the background itself, alone."""
    i: int = header[BACKGROUND]
    if nodes[i]["kind"] == SUM:
        i = edges[nodes[i]["first_edge"]]["child"]
    return i


@kernel
def weigh(i: int, nodes: Array, edges: Array, values: Array, m: int) -> None:
    """Share each row's weight among the children of sum ``i`` by their responsibility for it."""
    k = nodes[i]["n_children"]
    links, prior, share = np.empty(k, np.int64), np.empty(k), np.empty(k)
    edge = nodes[i]["first_edge"]
    for c in range(k):
        links[c], prior[c] = edge, edges[edge]["weight"]
        edge = edges[edge]["next"]
    for r in range(m):
        best = -np.inf
        for c in range(k):
            best = max(best, values[edges[links[c]]["child"], r])
        total = 0.0
        for c in range(k):
            share[c] = prior[c] * exp_nonpositive(values[edges[links[c]]["child"], r] - best)
            total += share[c]
        for c in range(k):
            edges[links[c]]["weight"] += share[c] / total
    nodes[i]["count"] += m


@kernel
def refresh_background(
    header: Array, nodes: Array, edges: Array, stats: Array, variance_floor: float
) -> None:
    """Recompute what the densities need, and let the wider Gaussians follow the first."""
    first = first_gaussian(header, nodes, edges)
    refresh_multivariate(first, nodes, stats, variance_floor)
    if first == header[BACKGROUND]:
        return
    edge = nodes[header[BACKGROUND]]["first_edge"]
    k = nodes[first]["n_scope"]
    for widening in WIDENINGS[1:]:
        edge = edges[edge]["next"]
        leaf = edges[edge]["child"]
        source, target = nodes[first]["stats"], nodes[leaf]["stats"]
        nodes[leaf]["count"] = nodes[first]["count"]
        for a in range(k * (k + 2)):
            stats[target + a] = stats[source + a]
        matrix = target + 2 * k
        for a in range(k):
            for b in range(a, k):
                stats[matrix + a * k + b] *= widening * widening
        refresh_multivariate(leaf, nodes, stats, variance_floor)
