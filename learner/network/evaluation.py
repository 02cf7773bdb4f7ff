"""The upward pass: log-densities of nodes for rows of data (paper, equation 1)."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.blocks import copy_columns, is_complete, new_block
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, fma, padded
from faust_oslrau.learner.vector.log_sums import add_term_of_row
from faust_oslrau.learner.vector.math import log_positive

from .block_evaluation import evaluate_rows, row_of
from .layout import FIRST, LEAF, NIL, PRODUCT, ROOT, SUM, Pools
from .leaves import evaluate_leaf, incomplete_of_row, multivariate_of_row


@kernel
def log_densities(
    pools: Pools, Z: Array, m: int, n_values: int, value_rows: Array, result: Array
) -> Array:
    """Fill ``result`` (n,) with the root's log-density of the columns of ``Z`` (d, n).

    Evaluates blocks of ``m`` columns and returns the ``values`` (n_values, .) of the last one;
    ``values`` and ``value_rows`` are those of `evaluate`.
    """
    # allocated here, as arrays of a kernel are aligned to cache lines
    block, values = new_block(Z.shape[0], m), np.empty((n_values, padded(m)))
    root = pools.header[ROOT]
    top = root if m == 1 else row_of(root, 0, value_rows)
    for start in range(0, Z.shape[1], m):
        n = min(m, Z.shape[1] - start)
        copy_columns(Z, start, n, block)
        # a single column that is left over is evaluated as two, as blocks are
        wide = max(n, min(2, m))
        evaluate(pools, block, wide, values, value_rows, NIL)
        for r in range(n):
            result[start + r] = values[top, r]
    return values


@kernel
def evaluate(pools: Pools, Z: Array, m: int, values: Array, value_rows: Array, end: int) -> None:
    """Fill ``values`` with the log-densities of nodes for the first ``m`` columns of ``Z``.

    ``Z`` (d, >= padded(m)) and ``values`` have columns for whole lanes; those past ``m`` mean
    nothing.

    ``value_rows`` (nodes,) says which row of ``values`` a node gets. Nodes without a row of their
    own (NIL, or all nodes if ``value_rows`` is empty) share one row for each level, the first
    ``deepest(d)`` rows of ``values``: so few fit into the nearest cache. In the end, the first of
    these holds the values of the root. If ``m`` is 1, the row of a node is its index. Univariate
    leaves under products get no values.

    The sum node ``end`` is left out; NIL for none. Missing values (NaN) are marginalised: a leaf
    without an observed variable has the density 1.
    """
    if m == 1:
        evaluate_row(pools, Z, values, end)
    else:
        evaluate_rows(pools, Z, m, values, value_rows, end)


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
    edge = nodes[i]["first_edge"] if n_leaves < nodes[i]["n_children"] else NIL
    while edge != NIL:  # inner nodes last, as in a block
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
