"""Forgetting and pruning: a model with a memory gives old records less weight.

It removes the components that it has forgotten, which makes room in the node budget for new ones.
The paper has neither memory nor budget.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.network.editing import free_node, remove_edge
from faust_oslrau.learner.network.layout import (
    BACKGROUND,
    FREE,
    LEAF,
    N_NODES,
    NIL,
    NODES_TOP,
    PRODUCT,
    ROOT,
    SUM,
    Pools,
    list_nodes,
)
from faust_oslrau.learner.vector.compiler import Array, kernel

from .expectation_maximisation import is_mixture
from .simplification import dissolve_sum

FADED = 1.0
"""Records below which a component is removed. A record that is partly forgotten counts in part."""

SPARE = 8
"""One part in this many of the node budget is freed of faded components, so that new ones can grow.
With room for only one at a time, a model would follow a change of the stream too slowly."""


@kernel
def forget(pools: Pools, share: float) -> None:
    """Reduce every count, and with it the weight of the past, to a ``share`` of itself."""
    header, nodes, edges, _, stats = pools
    for i in range(header[NODES_TOP]):
        kind = nodes[i]["kind"]
        if kind == FREE:
            continue
        nodes[i]["count"] *= share
        nodes[i]["observed"] *= share
        if kind == SUM:
            edge = nodes[i]["first_edge"]
            while edge != NIL:
                edges[edge]["weight"] = (edges[edge]["weight"] - 1.0) * share + 1.0
                edge = edges[edge]["next"]
        elif kind != LEAF:
            k, offset = nodes[i]["n_scope"], nodes[i]["stats"]
            for a in range(k):
                stats[offset + k + a] *= share
                for b in range(a):
                    stats[offset + 2 * k + a * k + b] *= share


@kernel
def prune(pools: Pools, most: int) -> None:
    """Remove faded components until there are at most ``most`` nodes.

    The oldest components of a sum are removed first; the last one, the background and the mixtures
    beside it stay. A sum below a product that has only one component left is dissolved into the
    product. Sums are visited in an order that depends on the structure alone, not on the indices of
    nodes: these change with a restart.
    """
    header, nodes, edges = pools.header, pools.nodes, pools.edges
    if header[N_NODES] <= most:
        return
    stack = np.empty(header[N_NODES], np.int64)
    if nodes[header[ROOT]]["kind"] == SUM:
        prune_sum(pools, header[ROOT], most, stack)
    live = np.empty(header[N_NODES], np.int64)
    list_nodes(header[ROOT], nodes, edges, live)
    for i in live[::-1]:
        previous, edge = NIL, nodes[i]["first_edge"] if nodes[i]["kind"] == PRODUCT else NIL
        while edge != NIL:
            child = edges[edge]["child"]
            if nodes[child]["kind"] == SUM and nodes[child]["n_scope"] > 1:
                prune_sum(pools, child, most, stack)
                if nodes[child]["n_children"] == 1:
                    dissolve_sum(pools, i, edge)
                    # another child is in its place, and parts of it may be the last ones now
                    edge = nodes[i]["first_edge"] if previous == NIL else edges[previous]["next"]
                    continue
            previous, edge = edge, edges[edge]["next"]


@kernel
def prune_sum(pools: Pools, s: int, most: int, stack: Array) -> None:
    """Remove faded components of one sum."""
    header, nodes, edges = pools.header, pools.nodes, pools.edges
    least, edge = 1, nodes[s]["first_edge"]
    while edge != NIL:
        least += stays(pools, edges[edge]["child"])
        edge = edges[edge]["next"]
    edge = nodes[s]["first_edge"]
    while edge != NIL and nodes[s]["n_children"] > least and header[N_NODES] > most:
        child, following = edges[edge]["child"], edges[edge]["next"]
        if edges[edge]["weight"] - 1.0 < FADED and not stays(pools, child):
            remove_edge(pools, s, child)
            free_tree(pools, child, stack)
        edge = following


@kernel
def stays(pools: Pools, child: int) -> bool:
    """Whether a component never fades: the background, and the mixtures beside it."""
    return child == pools.header[BACKGROUND] or is_mixture(pools, child)


@kernel
def free_tree(pools: Pools, root: int, stack: Array) -> None:
    """Free a node without a parent, and all nodes below it."""
    nodes, edges = pools.nodes, pools.edges
    stack[0], height = root, 1
    while height > 0:
        height -= 1
        i = stack[height]
        while nodes[i]["n_children"] > 0:
            child = edges[nodes[i]["first_edge"]]["child"]
            remove_edge(pools, i, child)
            stack[height] = child
            height += 1
        free_node(pools, i)
