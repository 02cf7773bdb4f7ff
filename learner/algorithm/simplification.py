"""Nodes with only one child are dissolved (paper, section 3.2)."""

from __future__ import annotations

from ..network.editing import add_edge, free_node, remove_edge
from ..network.layout import NIL, PRODUCT, ROOT
from ..vector.compiler import Array, kernel


@kernel
def dissolve_single(header: Array, nodes: Array, edges: Array, product: int, place: int) -> None:
    """Put the only child of a product into its place (paper, section 3.2)."""
    if nodes[product]["n_children"] > 1:
        return
    child = edges[nodes[product]["first_edge"]]["child"]
    remove_edge(header, nodes, edges, product, child)
    if place == NIL:
        header[ROOT] = child
    else:
        edges[place]["child"] = child
    free_node(header, nodes, product)


@kernel
def dissolve(header: Array, nodes: Array, edges: Array, product: int, place: int) -> None:
    """Put the only component of the sum at edge ``place`` of a product into the product."""
    mixture = edges[place]["child"]
    child = edges[nodes[mixture]["first_edge"]]["child"]
    remove_edge(header, nodes, edges, mixture, child)
    if nodes[child]["kind"] != PRODUCT:
        edges[place]["child"] = child
        free_node(header, nodes, mixture)
        return
    remove_edge(header, nodes, edges, product, mixture)
    free_node(header, nodes, mixture)
    while nodes[child]["n_children"] > 0:
        part = edges[nodes[child]["first_edge"]]["child"]
        remove_edge(header, nodes, edges, child, part)
        add_edge(header, nodes, edges, product, part, 1.0)
    free_node(header, nodes, child)
