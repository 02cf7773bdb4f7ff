"""Kernels that remove what a model with a memory has forgotten, to make room within its budget."""

from __future__ import annotations

import numpy as np

from ..network.editing import free_node, remove_edge
from ..network.layout import BACKGROUND, N_NODES, NIL, PRODUCT, ROOT, SUM
from ..network.traversal import list_nodes
from ..vector.compiler import Array, kernel
from .simplification import dissolve

FADED = 1.0
"""Records, faded ones counted by what is left of them, below which a component is removed."""


SPARE = 8
"""A part in so many of the node budget is kept free of faded components, for new ones to grow: with
room for one at a time a model of a stream that changed would lag behind its budget."""


@kernel
def prune(header: Array, nodes: Array, edges: Array, most: int) -> None:
    """Remove faded components until there are at most so many nodes.

    The oldest of a sum go first; its last one and the background stay. A sum below a product that
    is left with one component is dissolved into the product. The order of sums comes of the
    structure alone: where nodes lie changes with a restart.
    """
    if header[N_NODES] <= most:
        return
    stack = np.empty(header[N_NODES], np.int64)
    if nodes[header[ROOT]]["kind"] == SUM:
        prune_sum(header, nodes, edges, header[ROOT], most, stack)
    live = np.empty(header[N_NODES], np.int64)
    list_nodes(header[ROOT], nodes, edges, live, np.empty((len(live) + 1, 2), np.int64))
    for i in live[::-1]:
        edge = nodes[i]["first_edge"] if nodes[i]["kind"] == PRODUCT else NIL
        while edge != NIL:
            child, following = edges[edge]["child"], edges[edge]["next"]
            if nodes[child]["kind"] == SUM:
                prune_sum(header, nodes, edges, child, most, stack)
                if nodes[child]["n_children"] == 1:
                    dissolve(header, nodes, edges, i, edge)
            edge = following


@kernel
def prune_sum(header: Array, nodes: Array, edges: Array, s: int, most: int, stack: Array) -> None:
    """Remove faded components of one sum."""
    least = 1 + (s == header[ROOT] and header[BACKGROUND] != NIL)
    edge = nodes[s]["first_edge"]
    while edge != NIL and nodes[s]["n_children"] > least and header[N_NODES] > most:
        child, following = edges[edge]["child"], edges[edge]["next"]
        if edges[edge]["weight"] - 1.0 < FADED and child != header[BACKGROUND]:
            remove_edge(header, nodes, edges, s, child)
            free_tree(header, nodes, edges, child, stack)
        edge = following


@kernel
def free_tree(header: Array, nodes: Array, edges: Array, root: int, stack: Array) -> None:
    """Free a node that has no parent any more, and all below it."""
    stack[0], height = root, 1
    while height > 0:
        height -= 1
        i = stack[height]
        while nodes[i]["n_children"] > 0:
            child = edges[nodes[i]["first_edge"]]["child"]
            remove_edge(header, nodes, edges, i, child)
            stack[height] = child
            height += 1
        free_node(header, nodes, i)
