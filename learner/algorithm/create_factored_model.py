"""Algorithm 5, createFactoredModel: a product of univariate Gaussian leaves."""

from __future__ import annotations

from faust_oslrau.learner.network.editing import add_edge, new_node, take_statistics
from faust_oslrau.learner.network.layout import LEAF, NIL, PRODUCT, Pools, moments_length
from faust_oslrau.learner.network.leaves import refresh_leaf
from faust_oslrau.learner.vector.compiler import Array, kernel

LEAF_VARIANCE_AT_CREATION = 1e-4
"""Least variance of the leaves of a new component (authors' code)."""


@kernel
def create_factored_model(
    pools: Pools,
    scope: int,
    k: int,
    means: Array,
    variances: Array,
    variance_floor: float,
    before: int,
) -> int:
    """Algorithm 5, createFactoredModel: make a product of univariate Gaussians with count 0.

    Its scope are the ``k`` variables from offset ``scope`` on, with ``means`` and ``variances``
    (k,). It is listed for evaluation before the node ``before``, or last for NIL.
    """
    nodes, scopes = pools.nodes, pools.scopes
    product = new_node(pools, PRODUCT, scope, k, before)
    nodes[product]["stats"] = take_statistics(pools, moments_length(k))
    for a in range(k):
        # the first entries of the pool of scopes are the variables themselves
        leaf = new_node(pools, LEAF, scopes[scope + a], 1, NIL)
        nodes[leaf]["mean"] = means[a]
        nodes[leaf]["variance"] = max(variances[a], LEAF_VARIANCE_AT_CREATION)
        refresh_leaf(leaf, nodes, variance_floor)
        add_edge(pools, product, leaf, 1.0)
    return product
