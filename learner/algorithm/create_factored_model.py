"""Algorithm 5, createFactoredModel: a product of univariate Gaussian leaves."""

from __future__ import annotations

from ..network.editing import add_edge, new_block, new_node
from ..network.layout import LEAF, NIL, PRODUCT
from ..network.leaves import refresh_leaf
from ..vector.compiler import Array, kernel

LEAF_VARIANCE_AT_CREATION = 1e-4
"""A new component's leaves start at least this wide (authors' code)."""


@kernel
def add_factored_model(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    scope: int,
    k: int,
    means: Array,
    variances: Array,
    variance_floor: float,
    before: int,
) -> int:
    """Algorithm 5, createFactoredModel: a product of univariate Gaussians with count 0."""
    product = new_node(header, nodes, PRODUCT, scope, k, before)
    nodes[product]["stats"] = new_block(header, stats, k * (k + 2))
    for a in range(k):
        # the first entries of the pool of scopes are the variables themselves
        leaf = new_node(header, nodes, LEAF, scopes[scope + a], 1, NIL)
        nodes[leaf]["mean"] = means[a]
        nodes[leaf]["variance"] = max(variances[a], LEAF_VARIANCE_AT_CREATION)
        refresh_leaf(leaf, nodes, variance_floor)
        add_edge(header, nodes, edges, product, leaf, 1.0)
    return product
