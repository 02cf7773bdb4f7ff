"""Algorithm 4, createMultiVarGaussian: children of a product become one multivariate leaf."""

from __future__ import annotations

from faust_oslrau.learner.network.editing import add_statistics, free_node, new_node, remove_edge
from faust_oslrau.learner.network.layout import (
    FREE,
    MULTIVARIATE_LEAF,
    MULTIVARIATE_LEAVES,
    NIL,
    SCOPES_TOP,
    Pools,
)
from faust_oslrau.learner.network.leaves import refresh_multivariate
from faust_oslrau.learner.vector.compiler import Array, kernel

from .moments import add_counts
from .tasks import MiniBatch


@kernel
def create_multivariate_gaussians(
    pools: Pools,
    batch: MiniBatch,
    product: int,
    lo: int,
    hi: int,
    owner: Array,
    group: Array,
    leaves: Array,
    variance_floor: float,
) -> int:
    """Replace each group of a product's children by one leaf.

    ``owner`` and ``group`` (k,) are those of `choose_merges`. Fills ``leaves`` and returns their
    number; the caller adds them to the product.
    """
    header, nodes, _, scopes, stats = pools
    Z, segments = batch.Z, batch.segments
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
                    remove_edge(pools, product, owner[b])
                    free_node(pools, owner[b])
                group[b] = NIL
        header[SCOPES_TOP] += k
        leaf = create_multivariate_gaussian(pools, product, start, k)
        add_counts(leaf, nodes, scopes, stats, Z, segments, lo, hi, batch.complete)
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
def create_multivariate_gaussian(pools: Pools, product: int, scope: int, k: int) -> int:
    """Algorithm 4, createMultiVarGaussian: make a leaf with the product's statistics and counts.

    Its scope are the ``k`` variables from offset ``scope`` on. The product's mean and covariance
    include this mini-batch, its counts do not yet.
    """
    header, nodes = pools.header, pools.nodes
    leaf = new_node(pools, MULTIVARIATE_LEAF, scope, k, product)
    nodes[leaf]["count"] = nodes[product]["count"]
    add_statistics(pools, leaf, product)
    header[MULTIVARIATE_LEAVES] += 1
    return leaf
