"""Evaluation of one row: the log-density of every node, with the same bits as in a block."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.blocks import copy_columns, is_complete, new_block
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, fma
from faust_oslrau.learner.vector.log_sums import add_term_of_row
from faust_oslrau.learner.vector.math import log_positive

from .layout import FIRST, LEAF, NIL, PRODUCT, SUM, Pools
from .leaves import evaluate_leaf, incomplete_of_row, multivariate_of_row


@kernel
def evaluate_row(pools: Pools, Z: Array, values: Array, end: int) -> None:
    """Evaluate one row, node by node as listed; arguments are those of `evaluate`."""
    header, nodes, edges, scopes, stats = pools
    d = Z.shape[0]
    dx, which, complete = np.empty((d, 1)), np.empty(1, np.int64), is_complete(Z, 1)
    lanes, directions, block = dx, dx, Z
    if not complete:
        lanes, directions = np.empty((3 * d + 3, WIDTH)), np.empty((2 * d, d))
        block = new_block(d, WIDTH)
        copy_columns(Z, 0, 1, block)
    i = header[FIRST]
    while i != end and i != NIL:
        kind = nodes[i]["kind"]
        if kind == PRODUCT:
            evaluate_product_of_row(i, nodes, edges, Z, values)
        elif kind == SUM:
            values[i, 0] = sum_of_row(i, nodes, edges, Z, values)
        elif complete:
            values[i, 0] = multivariate_of_row(i, nodes, scopes, stats, Z, dx)
        else:
            values[i, 0] = incomplete_of_row(
                i, nodes, scopes, stats, block, which, lanes, directions
            )
        i = nodes[i]["next"]


@kernel
def evaluate_product_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> None:
    """Add up the log-densities of a product's children."""
    total, log_norm, n_leaves = 0.0, 0.0, 0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            dx = Z[nodes[child]["scope"], 0] - nodes[child]["mean"]
            if dx == dx:
                total = fma(-0.5 * nodes[child]["precision"] * dx, dx, total)
                log_norm += nodes[child]["log_norm"]
            n_leaves += 1
        edge = edges[edge]["next"]
    values[i, 0] = total + log_norm
    if n_leaves < nodes[i]["n_children"]:
        multiply_inner_of_row(i, nodes, edges, values)


@kernel
def multiply_inner_of_row(i: int, nodes: Array, edges: Array, values: Array) -> None:
    """Add the log-densities of those children of a product that are not univariate leaves."""
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] != LEAF:
            values[i, 0] += values[child, 0]
        edge = edges[edge]["next"]


@kernel
def sum_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> float:
    """Return the log of the weighted mean of the densities of a sum's children."""
    reference, total, weights = -np.inf, 0.0, 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child, weight = edges[edge]["child"], edges[edge]["weight"]
        if nodes[child]["kind"] == LEAF:
            evaluate_leaf(child, child, nodes, Z, 1, values)
        weights += weight
        reference, total = add_term_of_row(reference, total, weight, values[child, 0])
        edge = edges[edge]["next"]
    log_density: float = reference + log_positive(total * (1.0 / weights))
    return log_density
