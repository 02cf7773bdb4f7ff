"""Algorithm 3, createMixture: two children of a product become a mixture of two products."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.network.editing import (
    add_edge,
    add_statistics,
    free_node,
    join_scopes,
    new_node,
)
from faust_oslrau.learner.network.layout import (
    LEAF,
    MERGES_DENIED,
    MIXTURES,
    N_NODES,
    NIL,
    PRODUCT,
    SUM,
    Pools,
)
from faust_oslrau.learner.network.leaves import evaluate_leaf, gaussian
from faust_oslrau.learner.vector.compiler import Array, kernel

from .create_factored_model import create_factored_model
from .simplification import dissolve_product
from .tasks import CLEAR_WIN, MiniBatch

MIXTURE_OVERHEAD = 3
"""Nodes of a new mixture other than its leaves: a sum and two products."""


@kernel
def affordable(header: Array, nodes: Array, a: int, b: int, max_nodes: int) -> bool:
    """Whether the node budget allows a mixture over the scopes of ``a`` and ``b``."""
    k = nodes[a]["n_scope"] + nodes[b]["n_scope"]
    if header[N_NODES] + k + MIXTURE_OVERHEAD > max_nodes:
        header[MERGES_DENIED] += 1
        return False
    return True


@kernel
def create_mixture(
    pools: Pools,
    batch: MiniBatch,
    product: int,
    a: int,
    b: int,
    lo: int,
    hi: int,
    variance_floor: float,
) -> tuple[int, int]:
    """Algorithm 3, createMixture: make two components over the joint scope of ``a`` and ``b``.

    The first component gets the two children, the product's statistics, which include this
    mini-batch, and its count from before it (authors' implementation). The second is a factored
    model with the means of the mini-batch and the variances of the product.
    """
    header, nodes, scopes, stats = pools.header, pools.nodes, pools.scopes, pools.stats
    k = nodes[a]["n_scope"] + nodes[b]["n_scope"]
    scope = join_scopes(pools, a, b)
    first = new_node(pools, PRODUCT, scope, k, product)
    nodes[first]["count"] = nodes[product]["count"]
    offset = add_statistics(pools, first, product)
    add_edge(pools, first, a, 1.0)
    add_edge(pools, first, b, 1.0)
    means, variances = np.empty(k), np.empty(k)
    for v in range(k):
        means[v] = mean_of_rows(batch, scopes[scope + v], lo, hi, stats[offset + v])
        variances[v] = stats[offset + 2 * k + v * k + v]
    second = create_factored_model(pools, scope, k, means, variances, variance_floor, product)
    header[MIXTURES] += 1
    return first, second


@kernel
def mean_of_rows(batch: MiniBatch, v: int, lo: int, hi: int, default: float) -> float:
    """Return the mean of the observed values of a variable, or ``default`` without any."""
    n, total = 0, 0.0
    for t in range(lo, hi):
        x = batch.Z[v, batch.segments[t]]
        if x == x:
            n += 1
            total += x
    return total / n if n > 0 else default


@kernel
def split_rows(
    pools: Pools, batch: MiniBatch, a: int, b: int, second: int, lo: int, hi: int, top: int
) -> int:
    """Divide a segment between the components of a new mixture by their likelihood.

    The rows are copied to ``segments[top:]``, those of the first component first; returns how many
    these are. The first component is the product of ``a`` and ``b``, as they were before the
    mini-batch. Ties go to it.
    """
    nodes, edges = pools.nodes, pools.edges
    Z, values, segments = batch.Z, batch.values, batch.segments
    for child in (a, b):
        if nodes[child]["kind"] == LEAF:
            evaluate_leaf(child, child, nodes, Z, values.shape[1], values)
    share, rest = 0, top + hi - lo
    for t in range(lo, hi):
        r = segments[t]
        likelihood = 0.0
        edge = nodes[second]["first_edge"]
        while edge != NIL:
            leaf = edges[edge]["child"]
            x, mean = Z[nodes[leaf]["scope"], r], nodes[leaf]["mean"]
            likelihood += gaussian(x, mean, nodes[leaf]["precision"], nodes[leaf]["log_norm"])
            edge = edges[edge]["next"]
        if likelihood > values[a, r] + values[b, r] + CLEAR_WIN:
            rest -= 1
            segments[rest] = r
        else:
            segments[top + share] = r
            share += 1
    return share


@kernel
def install_mixture(
    pools: Pools, product: int, parent: int, place: int, first: int, second: int, share: int
) -> None:
    """Add a mixture to its product, or its components to the sum above the product.

    If the product has no other child, the components go to the sum above: a sum below a sum is
    dissolved into it (paper, section 3.2). The product has counted the mini-batch already;
    ``share`` is the number of rows that go to the first component. ``place`` is the edge from the
    parent to the product.
    """
    nodes, edges = pools.nodes, pools.edges
    before, count = nodes[first]["count"], nodes[product]["count"]
    if nodes[product]["n_children"] == 0 and parent != NIL and nodes[parent]["kind"] == SUM:
        # the weight is below the count where the background won rows that the product learned
        weight = edges[place]["weight"] - 1.0
        edges[place]["child"] = first
        edges[place]["weight"] = weight * (before + share) / count + 1.0
        to_second = weight * (count - before - share) / count + 1.0
        add_edge(pools, parent, second, to_second)
        free_node(pools, product)
        return
    mixture = new_node(pools, SUM, nodes[first]["scope"], nodes[first]["n_scope"], product)
    nodes[mixture]["count"] = count
    add_edge(pools, mixture, first, before + share + 1.0)
    add_edge(pools, mixture, second, count - before - share + 1.0)
    add_edge(pools, product, mixture, 1.0)
    dissolve_product(pools, product, place)
