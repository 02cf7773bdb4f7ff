"""Memory layout of the network: record types, node kinds and the slots of the header.

The network is a set of flat arrays so that compiled kernels can walk it. A node refers to its
children through a linked list of edges, to its scope through an offset into a pool of variable
indices, and to its statistics through an offset into a pool of floats.

The statistics of a node over ``k`` variables are, in this order, the mean ``(k,)``, the number of
observed values ``(k,)`` and a ``(k, k)`` matrix whose upper triangle with the diagonal is the
covariance and whose strictly lower triangle counts the rows in which both variables were
observed. A multivariate leaf adds the ``(k, k)`` whitening matrix, the inverse of the lower
Cholesky factor of its covariance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel

FREE, SUM, PRODUCT, LEAF, MULTIVARIATE_LEAF = range(5)
"""Node kinds; FREE marks a record on the free list."""

KIND_NAMES = {
    SUM: "sum",
    PRODUCT: "product",
    LEAF: "leaf",
    MULTIVARIATE_LEAF: "multivariate_leaf",
}

NODE = np.dtype(
    [
        # what the evaluation of a leaf needs lies together
        ("kind", np.int32),
        ("n_scope", np.int32),
        ("first_edge", np.uint32),
        ("scope", np.uint32),
        ("mean", np.float64),
        ("log_norm", np.float64),
        ("precision", np.float64),
        ("next", np.uint32),
        ("previous", np.uint32),
        ("last_edge", np.uint32),
        ("n_children", np.int32),
        ("stats", np.int64),
        ("count", np.float64),
        ("observed", np.float64),
        ("variance", np.float64),
    ],
    align=True,
)
"""One node. ``scope`` is an offset into the pool of scopes, whose first entries are the
variables, so that for a univariate leaf it is the variable itself. ``count`` is the paper's n;
``observed``, ``mean`` and ``variance`` belong to univariate leaves (in a multivariate leaf,
``variance`` is the floor on the diagonal); ``log_norm`` and ``precision`` cache what the density
needs. ``next`` and ``previous`` link the nodes to evaluate, all but univariate leaves, children
first. Indices are unsigned, as the compiler would add code for negative ones."""

EDGE = np.dtype([("child", np.uint32), ("next", np.uint32), ("weight", np.float64)], align=True)
"""One edge. ``weight`` is the unnormalised weight n_c + 1 of a sum node's child."""

NIL = 2**32 - 1
"""The end of a linked list, or no node: no pool is as long."""

(
    ROOT,
    NODES_TOP,
    EDGES_TOP,
    SCOPES_TOP,
    STATS_TOP,
    FREE_NODE,
    FREE_EDGE,
    N_NODES,
    FIRST,
    LAST,
    MIXTURES,
    MULTIVARIATE_LEAVES,
    MERGES_DENIED,
    BACKGROUND,
    HEADER_SIZE,
) = range(15)
"""Slots of the header: the root, the end of the used part of each pool, the free lists, the number
of live nodes, the ends of the list of nodes to evaluate, counters of structure changes, and the
background component: a child of the root that every record updates (NIL without one)."""


CHANGES = [MIXTURES, MULTIVARIATE_LEAVES, MERGES_DENIED]
"""Counters of structure changes."""

COUNTERS = (N_NODES, *CHANGES)
"""Slots of what is counted."""


class Pools(NamedTuple):
    """The arrays that a network is made of, as kernels take them.

    Attributes
    ----------
    header
        Integers (HEADER_SIZE,), one in each slot.
    nodes, edges
        Records of the types NODE and EDGE.
    scopes
        Variables, ascending within a scope. The first d are all variables.
    stats
        Statistics of products and multivariate leaves.
    """

    header: Array
    nodes: Array
    edges: Array
    scopes: Array
    stats: Array


@kernel
def moments_length(k: int) -> int:
    """Length of mean, counts and matrix over ``k`` variables: all that a product node has."""
    return k * (k + 2)


@kernel
def statistics_length(kind: int, k: int) -> int:
    """Length of the statistics of a node over ``k`` variables, with its whitening matrix."""
    if kind == PRODUCT:
        return moments_length(k)
    return moments_length(k) + k * k if kind == MULTIVARIATE_LEAF else 0


@kernel
def deepest(n_variables: int) -> int:
    """Return the most nodes on a path: kinds alternate, and each product splits its scope.

    But a mixture beside grown components is a sum below a sum, and has sums over one variable.
    """
    return 2 * n_variables + 3


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
def total_weight(pools: Pools, s: int) -> float:
    """Sum of the weights of a sum's children."""
    total, edge = 0.0, pools.nodes[s]["first_edge"]
    while edge != NIL:
        total += pools.edges[edge]["weight"]
        edge = pools.edges[edge]["next"]
    return total
