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
        evaluate(header, nodes, edges, scopes, stats, block, m, values, NIL)
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
    end: int,
) -> None:
    """Fill ``values[node, r]`` with each node's log-density of column r of ``Z`` (d, >= m).

    Goes up to node ``end``, which is left out; NIL for all. Missing values (NaN) are marginalised:
    a leaf without an observed variable counts as 1. Rows of ``values`` that belong to univariate
    leaves under products are left alone.
    """
    d = Z.shape[0]
    scratch, vectors = np.empty((2 * d + 2, m)), np.empty((d + 1, d))
    ends = ends_of_runs(Z, m)
    i = header[FIRST]
    while i != end:
        kind = nodes[i]["kind"]
        if kind == MULTIVARIATE_LEAF and len(ends) == 0:
            evaluate_multivariate(i, nodes, scopes, stats, Z, m, values, scratch)
        elif kind == MULTIVARIATE_LEAF:
            evaluate_incomplete(i, nodes, scopes, stats, Z, m, values, scratch, vectors, ends)
        elif kind == PRODUCT and m == 1:
            evaluate_product_of_row(i, nodes, edges, Z, values)
        elif kind == PRODUCT and len(ends) == 0:
            evaluate_product(i, nodes, edges, Z, m, values)
        elif kind == PRODUCT:
            evaluate_incomplete_product(i, nodes, edges, Z, m, values, scratch[0])
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
def evaluate_product(i: int, nodes: Array, edges: Array, Z: Array, m: int, values: Array) -> None:
    """Sum of the children's log-densities, those of univariate leaves computed on the way.

    No value is missing. The quadratic forms of the leaves come first, two at a time; then what
    normalises them; then the other children.
    """
    log_norm = 0.0
    for r in range(m):
        values[i, r] = 0.0
    edge = next_leaf(nodes, edges, nodes[i]["first_edge"])
    while edge != NIL:
        v, mean, factor = quadratic_form(nodes, edges[edge]["child"])
        log_norm += nodes[edges[edge]["child"]]["log_norm"]
        edge = next_leaf(nodes, edges, edges[edge]["next"])
        if edge == NIL:
            for r in range(m):
                dx = Z[v, r] - mean
                values[i, r] = fma(factor * dx, dx, values[i, r])
            break
        v2, mean2, factor2 = quadratic_form(nodes, edges[edge]["child"])
        log_norm += nodes[edges[edge]["child"]]["log_norm"]
        edge = next_leaf(nodes, edges, edges[edge]["next"])
        for r in range(m):
            dx, dx2 = Z[v, r] - mean, Z[v2, r] - mean2
            values[i, r] = fma(factor2 * dx2, dx2, fma(factor * dx, dx, values[i, r]))
    for r in range(m):
        values[i, r] += log_norm
    add_inner_children(i, nodes, edges, m, values)


@kernel
def evaluate_incomplete_product(
    i: int, nodes: Array, edges: Array, Z: Array, m: int, values: Array, log_norm: Array
) -> None:
    """Do the same where values are missing, with the same bits where none is.

    ``log_norm`` (m,) is scratch.
    """
    for r in range(m):
        values[i, r], log_norm[r] = 0.0, 0.0
    edge = next_leaf(nodes, edges, nodes[i]["first_edge"])
    while edge != NIL:
        child = edges[edge]["child"]
        v, mean, factor = quadratic_form(nodes, child)
        norm = nodes[child]["log_norm"]
        for r in range(m):
            dx = Z[v, r] - mean
            values[i, r] = choose(dx == dx, fma(factor * dx, dx, values[i, r]), values[i, r])
            log_norm[r] += choose(dx == dx, norm, 0.0)
        edge = next_leaf(nodes, edges, edges[edge]["next"])
    for r in range(m):
        values[i, r] += log_norm[r]
    add_inner_children(i, nodes, edges, m, values)


@kernel
def evaluate_product_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> None:
    """Do the same for one row, without loops of one round."""
    total, log_norm, n_leaves = 0.0, 0.0, 0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            v, mean, factor = quadratic_form(nodes, child)
            dx = Z[v, 0] - mean
            if dx == dx:
                total = fma(factor * dx, dx, total)
                log_norm += nodes[child]["log_norm"]
            n_leaves += 1
        edge = edges[edge]["next"]
    values[i, 0] = total + log_norm
    if n_leaves < nodes[i]["n_children"]:
        add_inner_children(i, nodes, edges, 1, values)


@kernel
def add_inner_children(i: int, nodes: Array, edges: Array, m: int, values: Array) -> None:
    """Add the log-densities of a product's children that are no univariate leaves."""
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] != LEAF:
            for r in range(m):
                values[i, r] += values[child, r]
        edge = edges[edge]["next"]


@kernel
def next_leaf(nodes: Array, edges: Array, edge: int) -> int:
    """Find the first edge from this one on that leads to a univariate leaf; NIL without one."""
    while edge != NIL and nodes[edges[edge]["child"]]["kind"] != LEAF:
        edge = edges[edge]["next"]
    return edge


@kernel
def quadratic_form(nodes: Array, leaf: int) -> tuple[int, float, float]:
    """Variable, mean and factor of a univariate leaf's log-density factor * (x - mean)**2."""
    return nodes[leaf]["scope"], nodes[leaf]["mean"], -0.5 * nodes[leaf]["precision"]


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
