"""More variables for a network that has learned others: N(0, 1) and independent of these."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import IntArray
from faust_oslrau.learner.network.editing import add_edge, new_node, take_statistics
from faust_oslrau.learner.network.layout import (
    LEAF,
    MULTIVARIATE_LEAF,
    NIL,
    PRODUCT,
    SCOPES_TOP,
    SUM,
    moments_length,
    statistics_length,
)
from faust_oslrau.learner.network.leaves import refresh_leaf, refresh_multivariate
from faust_oslrau.learner.network.structure import Network
from faust_oslrau.learner.stored import Places

from .expectation_maximisation import WEIGHT_PRIOR


def add_variables(network: Network, places: Places, variance_floor: float) -> None:
    """Add variables to a network; the density of the others stays the same.

    A product over all variables gets a leaf for each, and a Gaussian over all of them a dimension.
    In a background of several blocks, the last one has them.
    """
    new, n_wider = places.new, len(_complete(network))
    n_nodes, n_stats = 2 * n_wider * len(new), statistics_length(MULTIVARIATE_LEAF, places.n)
    network.reserve(n_nodes, n_nodes, places.n * (1 + n_wider), n_wider * n_stats)
    _renumber(network, places)
    complete, pools = _complete(network), network.pools
    sums = [i for i in complete if network.nodes[i]["kind"] == SUM and i != network.root]
    in_mixtures = {child for i in sums for child, _ in network.children(i)}
    for i in complete:
        _widen(network, i, new, variance_floor)
        if network.nodes[i]["kind"] == PRODUCT and i != network.background:
            for v in new.tolist():
                leaf = _new_leaf(network, v, variance_floor)
                if i in in_mixtures:  # where leaves of each variable are in a sum
                    factor = new_node(pools, SUM, v, 1, i)
                    add_edge(pools, factor, leaf, WEIGHT_PRIOR)
                    network.nodes[leaf]["observed"], leaf = 1.0, factor
                add_edge(pools, i, leaf, 1.0)


def widest_block(network: Network) -> int:
    """Return how many variables the Gaussian of the background has that would get new ones."""
    background = network.background
    if background is None:
        return 0
    *_, last = background, *(child for child, _ in network.children(background))
    return int(network.nodes[last]["n_scope"])


def _complete(network: Network) -> list[int]:
    """Return the nodes over all variables, and the block of a background that gets new ones."""
    found = [network.root]
    for i in found:
        children = [child for child, _ in network.children(i)]
        if network.nodes[i]["kind"] == SUM:
            found += children
        elif i == network.background:
            found += children[-1:]
    return found


def _renumber(network: Network, places: Places) -> None:
    """Let a network be over all variables, of which the nodes have those at the old places."""
    nodes, n = network.nodes, places.n
    variables = places.old[network.scopes[nodes["scope"]]]
    nodes["scope"] = np.where(nodes["n_scope"] == 1, variables, nodes["scope"] + n)
    network.scopes = np.concatenate([np.arange(n), places.old[network.scopes]])
    network.header[SCOPES_TOP] += n
    network.n_variables = n


def _widen(network: Network, i: int, new: IntArray, variance_floor: float) -> None:
    """Add variables to the scope and the statistics of a node."""
    node, old, top = network.nodes[i], network.scope(i), int(network.header[SCOPES_TOP])
    scope, kind, k = np.union1d(old, new), int(node["kind"]), len(old)
    at, m = np.searchsorted(scope, old), len(scope)
    if kind != SUM:
        before = network.statistics(i)
        seen = 1.0 if kind == MULTIVARIATE_LEAF else 0.0  # variances and pairs of values, too
        mean, count, matrix = np.zeros(m), np.full(m, seen), seen * np.tri(m)
        mean[at], count[at] = before[:k], before[k : 2 * k]
        matrix[np.ix_(at, at)] = before[2 * k :].reshape(k, k)
        node["stats"] = start = take_statistics(network.pools, statistics_length(kind, m))
        moments = np.concatenate([mean, count, matrix], axis=None)
        network.stats[start : start + moments_length(m)] = moments
    network.scopes[top : top + m] = scope
    network.header[SCOPES_TOP] += m
    node["scope"], node["n_scope"] = top, m
    if kind == MULTIVARIATE_LEAF:
        refresh_multivariate(i, network.nodes, network.stats, variance_floor)


def _new_leaf(network: Network, variable: int, variance_floor: float) -> int:
    """Return a new leaf N(0, 1) of one variable."""
    leaf = new_node(network.pools, LEAF, variable, 1, NIL)
    network.nodes[leaf]["variance"] = 1.0
    refresh_leaf(leaf, network.nodes, variance_floor)
    return int(leaf)
