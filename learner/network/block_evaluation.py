"""Evaluation of a block: the log-density of every node for rows side by side.

Each row is computed by the same operations in the same order whatever the block, so a row's bits
never depend on its neighbours.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.blocks import FEW, is_complete
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    aligned_stack,
    choose,
    fma,
    load,
    padded,
    spread,
    store,
)
from faust_oslrau.learner.vector.log_sums import NOTHING, add_term, begin_sum, end_sum
from faust_oslrau.learner.vector.math import log_positive

from .layout import LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, ROOT, SUM, Pools, deepest
from .leaves import evaluate_leaf, evaluate_multivariate

MANY = 8
"""Children of a sum from which on checking for negligible children pays."""


@kernel
def evaluate_rows(
    pools: Pools, Z: Array, m: int, values: Array, value_rows: Array, end: int
) -> None:
    """Evaluate a block depth-first; arguments are those of `evaluate`.

    The value of a child is added to its parent at once, while it is in the nearest cache. While a
    sum is incomplete, its row of ``values`` is the reference of `log_sums`, and the row of
    ``totals`` for its level the total.
    """
    header, nodes, edges, scopes, stats = pools
    d, depth = Z.shape[0], deepest(Z.shape[0])
    complete, which = is_complete(Z, m), np.empty(WIDTH, np.int64)
    lanes, directions = np.empty((3 * d + 3, WIDTH)), np.empty((2 * d, d))
    variables, forms = np.empty(d, np.int64), np.empty(3 * d)
    path, totals = np.empty((depth, 2), np.int64), np.empty((depth, padded(m)))
    weights, least = np.empty(depth), np.empty(depth)
    i, level = header[ROOT], 0
    while True:
        row, edge, kind = row_of(i, level, value_rows), nodes[i]["first_edge"], nodes[i]["kind"]
        if kind == LEAF:
            evaluate_leaf(i, row, nodes, Z, m, values)
        elif kind == PRODUCT:
            n = list_leaves(i, nodes, edges, variables, forms)
            multiply_leaves(row, Z, m, values, n, variables, forms, complete)
            edge = inner_edge(edge, nodes, edges)
        elif kind == MULTIVARIATE_LEAF:
            evaluate_multivariate(
                i, row, nodes, scopes, stats, Z, m, values, complete, which, lanes, directions
            )
        path[level, 0], path[level, 1] = i, edge
        while edge == NIL:
            if level == 0:
                return
            level -= 1
            i, edge, child_row = path[level, 0], path[level, 1], row
            row = row_of(i, level, value_rows)
            weight, following = edges[edge]["weight"], edges[edge]["next"]
            if nodes[i]["kind"] == PRODUCT:
                add_row(child_row, row, m, values)
                following = inner_edge(following, nodes, edges)
            elif edge == nodes[i]["first_edge"]:
                weights[level], least[level] = weight, weight
                begin_sum(child_row, row, level, m, weight, values, totals)
            elif i != end:
                limit = -np.inf
                if nodes[i]["n_children"] > MANY and nodes[i]["n_scope"] <= FEW:
                    # a total is never below the least weight
                    limit = NOTHING + log_positive(least[level] / weight)
                add_term(child_row, row, level, m, weight, limit, values, totals)
                weights[level], least[level] = weights[level] + weight, min(least[level], weight)
            if following == NIL and nodes[i]["kind"] == SUM:
                end_sum(row, level, m, 1.0 / weights[level], values, totals)
            path[level, 1] = edge = following
        i = edges[edge]["child"]
        level += 1


@kernel
def row_of(i: int, level: int, value_rows: Array) -> int:
    """Return the row of ``values`` of node ``i``, which lies on this level."""
    if len(value_rows) == 0 or value_rows[i] == NIL:
        return level
    return int(value_rows[i])


@kernel
def add_row(child_row: int, row: int, m: int, values: Array) -> None:
    """Multiply the density of a product by that of one of its children."""
    for r in range(0, m, WIDTH):
        store(values, row, r, load(values, row, r) + load(values, child_row, r))


@kernel
def inner_edge(edge: int, nodes: Array, edges: Array) -> int:
    """Return the first edge, from this one on, to a child that is not a univariate leaf, or NIL."""
    while edge != NIL and nodes[edges[edge]["child"]]["kind"] == LEAF:
        edge = edges[edge]["next"]
    return edge


@kernel
def list_leaves(i: int, nodes: Array, edges: Array, variables: Array, forms: Array) -> int:
    """List the variables of a product's univariate leaves; return how many there are.

    ``forms`` (>= 3 n) takes mean, factor and constant of each leaf's log-density
    factor * (x - mean)**2 + constant.
    """
    n, edge = 0, nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            variables[n] = nodes[child]["scope"]
            forms[3 * n], forms[3 * n + 1] = nodes[child]["mean"], -0.5 * nodes[child]["precision"]
            forms[3 * n + 2] = nodes[child]["log_norm"]
            n += 1
        edge = edges[edge]["next"]
    return n


@kernel
def multiply_leaves(
    row: int,
    Z: Array,
    m: int,
    values: Array,
    n: int,
    variables: Array,
    forms: Array,
    complete: bool,
) -> None:
    """Sum of the log-densities of a product's ``n`` univariate leaves, as listed.

    The bits are the same whether some rows lack values or none does, which ``complete`` says.
    """
    aligned_stack()
    constant = 0.0
    for c in range(n):
        constant += forms[3 * c + 2]
    # two lanes at a time, as one alone waits for its own operations
    pairs = m // (2 * WIDTH) if complete else 0
    for r in range(0, pairs * 2 * WIDTH, 2 * WIDTH):
        first, second = spread(0.0), spread(0.0)
        for c in range(n):
            v, mean, factor = variables[c], forms[3 * c], forms[3 * c + 1]
            dx, dy = mean - load(Z, v, r), mean - load(Z, v, r + WIDTH)
            first, second = fma(factor * dx, dx, first), fma(factor * dy, dy, second)
        store(values, row, r, first + constant)
        store(values, row, r + WIDTH, second + constant)
    for r in range(pairs * 2 * WIDTH, m, WIDTH):
        total, log_norm = spread(0.0), spread(constant)
        if complete:
            for c in range(n):
                dx = forms[3 * c] - load(Z, variables[c], r)
                total = fma(forms[3 * c + 1] * dx, dx, total)
        else:
            log_norm = spread(0.0)
            for c in range(n):
                dx = forms[3 * c] - load(Z, variables[c], r)
                observed = dx == dx
                total = choose(observed, fma(forms[3 * c + 1] * dx, dx, total), total)
                log_norm = log_norm + choose(observed, forms[3 * c + 2], spread(0.0))
        store(values, row, r, total + log_norm)
