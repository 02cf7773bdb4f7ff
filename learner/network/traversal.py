"""Kernels that walk the network: all nodes children first, and the children of one node."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel

from .layout import NIL


@kernel
def deepest(n_variables: int) -> int:
    """Return the most nodes on a path: kinds alternate, and each product splits its scope."""
    return 2 * n_variables + 2


@kernel
def list_nodes(root: int, nodes: Array, edges: Array, result: Array) -> int:
    """Fill ``result`` with all nodes, children first; return the length of the longest path."""
    stack = np.empty((len(result) + 1, 2), np.int64)
    stack[0, 0] = root
    stack[0, 1] = nodes[root]["first_edge"]
    height, depth, n = 1, 1, 0
    while height > 0:
        edge = stack[height - 1, 1]
        if edge == NIL:
            height -= 1
            result[n] = stack[height, 0]
            n += 1
            continue
        child = edges[edge]["child"]
        stack[height - 1, 1] = edges[edge]["next"]
        stack[height, 0] = child
        stack[height, 1] = nodes[child]["first_edge"]
        height += 1
        depth = max(depth, height)
    return depth


@kernel
def list_children(i: int, nodes: Array, edges: Array, children: Array, weights: Array) -> None:
    """Fill ``children`` (n,) and ``weights`` (n,) with the children of a node and their weights."""
    edge = nodes[i]["first_edge"]
    for c in range(len(children)):
        children[c], weights[c] = edges[edge]["child"], edges[edge]["weight"]
        edge = edges[edge]["next"]
