"""Nodes with only one child are dissolved into their parents (paper, section 3.2)."""

from __future__ import annotations

from faust_oslrau.learner.network.editing import add_edge, free_node, remove_edge
from faust_oslrau.learner.network.layout import NIL, PRODUCT, ROOT, Pools
from faust_oslrau.learner.vector.compiler import kernel


@kernel
def dissolve_product(pools: Pools, product: int, place: int) -> None:
    """Put the only child of a product into its place; do nothing if there are more.

    ``place`` is the edge to the product, NIL for the root.
    """
    header, nodes, edges = pools.header, pools.nodes, pools.edges
    if nodes[product]["n_children"] > 1:
        return
    child = edges[nodes[product]["first_edge"]]["child"]
    remove_edge(pools, product, child)
    if place == NIL:
        header[ROOT] = child
    else:
        edges[place]["child"] = child
    free_node(pools, product)


@kernel
def dissolve_sum(pools: Pools, product: int, place: int) -> None:
    """Replace the sum at edge ``place`` of a product by its only component.

    The children of a component that is a product become children of the product above.
    """
    nodes, edges = pools.nodes, pools.edges
    mixture = edges[place]["child"]
    child = edges[nodes[mixture]["first_edge"]]["child"]
    remove_edge(pools, mixture, child)
    if nodes[child]["kind"] != PRODUCT:
        edges[place]["child"] = child
        free_node(pools, mixture)
        return
    remove_edge(pools, product, mixture)
    free_node(pools, mixture)
    while nodes[child]["n_children"] > 0:
        part = edges[nodes[child]["first_edge"]]["child"]
        remove_edge(pools, child, part)
        add_edge(pools, product, part, 1.0)
    free_node(pools, child)
