"""Kernels of the upward pass: the log-density of every node for a block of rows.

Blocks are stored variable by variable, ``Z`` of shape (d, m), so that the innermost loop runs
over rows. Each row is computed by the same operations in the same order whatever the block, so
a row's bits never depend on its neighbours.
"""

from __future__ import annotations

import numpy as np

from ._gaussian import (
    ends_of_runs,
    evaluate_incomplete,
    evaluate_multivariate,
    gaussian,
    observed_gaussian,
)
from ._jit import kernel
from ._layout import FIRST, LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, ROOT, SUM, Array
from ._math import choose, exp_nonpositive, fma, log_positive


@kernel
def list_nodes(root: int, nodes: Array, edges: Array, result: Array, stack: Array) -> int:
    """List all nodes, children first; return the number of nodes on the longest path."""
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
def copy_columns(Z: Array, start: int, m: int, block: Array) -> None:
    """Copy ``m`` columns of ``Z`` from ``start`` on to the front of ``block``."""
    for v in range(Z.shape[0]):
        for r in range(m):
            block[v, r] = Z[v, start + r]


@kernel
def log_densities(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    values: Array,
    result: Array,
) -> None:
    """Fill ``result`` (n,) with the root's log-density of the columns of ``Z`` (d, n).

    Goes block by block, as many columns at a time as ``values`` (nodes, block) has.
    """
    block = np.empty((Z.shape[0], values.shape[1]))
    for start in range(0, Z.shape[1], values.shape[1]):
        m = min(values.shape[1], Z.shape[1] - start)
        copy_columns(Z, start, m, block)
        evaluate(header, nodes, edges, scopes, stats, block, m, values)
        for r in range(m):
            result[start + r] = values[header[ROOT], r]


@kernel
def evaluate(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    values: Array,
) -> None:
    """Fill ``values[node, r]`` with each node's log-density of column r of ``Z`` (d, >= m).

    Missing values (NaN) are marginalised: a leaf without an observed variable counts as 1. Rows
    of ``values`` that belong to univariate leaves under products are left alone.
    """
    d = Z.shape[0]
    scratch, vectors = np.empty((2 * d + 2, m)), np.empty((d + 1, d))
    ends = ends_of_runs(Z, m)
    i = header[FIRST]
    while i != NIL:
        kind = nodes[i]["kind"]
        if kind == MULTIVARIATE_LEAF and len(ends) == 0:
            evaluate_multivariate(i, nodes, scopes, stats, Z, m, values, scratch)
        elif kind == MULTIVARIATE_LEAF:
            evaluate_incomplete(i, nodes, scopes, stats, Z, m, values, scratch, vectors, ends)
        elif kind == PRODUCT and m == 1:
            values[i, 0] = product_of_row(i, nodes, edges, Z, values)
        elif kind == PRODUCT:
            evaluate_product(i, nodes, edges, Z, m, values, len(ends) == 0)
        elif kind == SUM and m == 1:
            values[i, 0] = sum_of_row(i, nodes, edges, Z, values)
        elif kind == SUM:
            evaluate_sum(i, nodes, edges, Z, m, values, scratch[0])
        i = nodes[i]["next"]


@kernel
def evaluate_leaf(i: int, nodes: Array, Z: Array, m: int, values: Array) -> None:
    """Univariate Gaussian leaf."""
    variable = nodes[i]["scope"]
    mean, precision, log_norm = nodes[i]["mean"], nodes[i]["precision"], nodes[i]["log_norm"]
    for r in range(m):
        values[i, r] = gaussian(Z[variable, r], mean, precision, log_norm)


@kernel
def evaluate_product(
    i: int, nodes: Array, edges: Array, Z: Array, m: int, values: Array, complete: bool
) -> None:
    """Sum of the children's log-densities, those of univariate leaves computed on the way.

    ``complete`` says that no value is missing, which then need not be asked for each leaf.
    """
    for r in range(m):
        values[i, r] = 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        variable, mean = nodes[child]["scope"], nodes[child]["mean"]
        precision, log_norm = nodes[child]["precision"], nodes[child]["log_norm"]
        if nodes[child]["kind"] != LEAF:
            for r in range(m):
                values[i, r] += values[child, r]
        elif complete:
            for r in range(m):
                values[i, r] += observed_gaussian(Z[variable, r], mean, precision, log_norm)
        else:
            for r in range(m):
                values[i, r] += gaussian(Z[variable, r], mean, precision, log_norm)
        edge = edges[edge]["next"]


@kernel
def product_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> float:
    """Do the same as ``evaluate_product`` for one row, without loops of one round."""
    total = 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            x, mean = Z[nodes[child]["scope"], 0], nodes[child]["mean"]
            total += gaussian(x, mean, nodes[child]["precision"], nodes[child]["log_norm"])
        else:
            total += values[child, 0]
        edge = edges[edge]["next"]
    return total


@kernel
def evaluate_sum(
    i: int,
    nodes: Array,
    edges: Array,
    Z: Array,
    m: int,
    values: Array,
    total: Array,
) -> None:
    """Log of the weighted mean of the children's densities, scaled by the largest of them."""
    weights = 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child, weight = edges[edge]["child"], edges[edge]["weight"]
        if nodes[child]["kind"] == LEAF:
            evaluate_leaf(child, nodes, Z, m, values)
        if weights == 0.0:
            for r in range(m):
                values[i, r] = values[child, r]
                total[r] = weight
        else:
            for r in range(m):
                largest, total[r] = add_term(values[i, r], total[r], weight, values[child, r])
                values[i, r] = largest
        weights += weight
        edge = edges[edge]["next"]
    share = 1.0 / weights
    for r in range(m):
        values[i, r] += log_positive(total[r] * share)


@kernel
def sum_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> float:
    """Do the same as ``evaluate_sum`` for one row, without loops of one round."""
    largest, total, weights = -np.inf, 0.0, 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child, weight = edges[edge]["child"], edges[edge]["weight"]
        if nodes[child]["kind"] == LEAF:
            evaluate_leaf(child, nodes, Z, 1, values)
        weights += weight
        largest, total = add_term(largest, total, weight, values[child, 0])
        edge = edges[edge]["next"]
    return largest + log_positive(total * (1.0 / weights))


@kernel
def add_term(largest: float, total: float, weight: float, log_value: float) -> tuple[float, float]:
    """Add weight e**log_value to total e**largest, for the larger of the two logarithms."""
    scale = exp_nonpositive(-abs(log_value - largest))
    ahead = log_value > largest
    total = choose(ahead, fma(total, scale, weight), fma(weight, scale, total))
    return choose(ahead, log_value, largest), total
