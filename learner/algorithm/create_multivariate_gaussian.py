"""Algorithm 4, createMultiVarGaussian: children of a product become one multivariate leaf."""

from __future__ import annotations

from ..network.editing import copy_statistics, free_node, new_block, new_node, remove_edge
from ..network.layout import FREE, MULTIVARIATE_LEAF, MULTIVARIATE_LEAVES, NIL, SCOPES_TOP
from ..network.leaves import refresh_multivariate
from ..vector.compiler import Array, kernel
from .moments import add_counts


@kernel
def join_groups(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    rows: Array,
    product: int,
    owner: Array,
    group: Array,
    lo: int,
    hi: int,
    complete: bool,
    variance_floor: float,
    leaves: Array,
) -> int:
    """Algorithm 4, createMultiVarGaussian: replace each group of children by one leaf.

    A leaf takes the product's statistics, this batch included. Fills ``leaves`` and returns
    their number; the caller hangs them up.
    """
    n_leaves = 0
    for a in range(len(group)):
        if group[a] == NIL or not is_joined(owner, group, a):
            continue
        start, k, joined = header[SCOPES_TOP], 0, group[a]
        for b in range(len(group)):
            if group[b] == joined:
                scopes[start + k] = scopes[nodes[product]["scope"] + b]
                k += 1
                if nodes[owner[b]]["kind"] != FREE:
                    remove_edge(header, nodes, edges, product, owner[b])
                    free_node(header, nodes, owner[b])
                group[b] = NIL
        header[SCOPES_TOP] += k
        leaf = new_leaf(header, nodes, scopes, stats, product, start, k)
        block = nodes[leaf]["stats"]
        add_counts(stats, block, scopes, start, k, Z, rows, lo, hi, complete)
        nodes[leaf]["count"] += hi - lo
        refresh_multivariate(leaf, nodes, stats, variance_floor)
        leaves[n_leaves] = leaf
        n_leaves += 1
    return n_leaves


@kernel
def is_joined(owner: Array, group: Array, a: int) -> bool:
    """Whether the group at position ``a`` has more than one child."""
    others = 0
    for b in range(len(group)):
        others += group[b] == group[a] and owner[b] != owner[a]
    return others > 0


@kernel
def new_leaf(
    header: Array, nodes: Array, scopes: Array, stats: Array, product: int, scope: int, k: int
) -> int:
    """Make a multivariate leaf with its part of the product's statistics and counts."""
    leaf = new_node(header, nodes, MULTIVARIATE_LEAF, scope, k, product)
    nodes[leaf]["count"] = nodes[product]["count"]
    nodes[leaf]["stats"] = new_block(header, stats, 2 * k * (k + 1))
    copy_statistics(nodes, scopes, stats, product, leaf)
    header[MULTIVARIATE_LEAVES] += 1
    return leaf
