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
    all_below,
    choose,
    fma,
    load,
    padded,
    spread,
    store,
)
from faust_oslrau.learner.vector.log_sums import (
    FAR_AHEAD,
    NOTHING,
    add_term,
    begin_sum,
    end_sum,
    moved,
)
from faust_oslrau.learner.vector.math import exp_bounded, log_positive

from .layout import FIRST, LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, ROOT, SUM, Pools, deepest
from .leaves import evaluate_leaf, evaluate_multivariate, gaussian

MANY = 8
"""Children of a sum from which on checking for negligible children pays."""

MOST_TERMS = 64
"""Leaves of a sum over one variable that are evaluated side by side."""


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
    terms = np.empty((MOST_TERMS, 4))
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
        elif kind == SUM:
            n = list_terms(i, nodes, edges, terms)
            if n > 0:
                mix_leaves(row, Z, m, values, nodes[i]["scope"], n, terms)
                if len(value_rows) > 0:
                    evaluate_terms(i, nodes, edges, Z, m, values, value_rows)
                edge = NIL
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
def rows_of_nodes(pools: Pools, n: int) -> Array:
    """Return value rows with one for each of ``n`` nodes, its index, where learning needs it.

    It does not need those of leaves in mixtures of single variables below a product, which are as
    soon computed as loaded.
    """
    header, nodes, edges = pools.header, pools.nodes, pools.edges
    value_rows, terms = np.arange(n), np.empty((MOST_TERMS, 4))
    i = header[FIRST]
    while i != NIL:
        place = nodes[i]["first_edge"] if nodes[i]["kind"] == PRODUCT else NIL
        while place != NIL:
            child = edges[place]["child"]
            if nodes[child]["kind"] == SUM and list_terms(child, nodes, edges, terms) > 0:
                edge = nodes[child]["first_edge"]
                while edge != NIL:
                    value_rows[edges[edge]["child"]] = NIL
                    edge = edges[edge]["next"]
            place = edges[place]["next"]
        i = nodes[i]["next"]
    return value_rows


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
def list_terms(i: int, nodes: Array, edges: Array, terms: Array) -> int:
    """List mean, precision, constant and weight of a sum's children, if all are univariate leaves.

    Returns how many there are, 0 if others are among them or there is no room.
    """
    n, edge = 0, nodes[i]["first_edge"]
    if nodes[i]["n_scope"] > 1 or nodes[i]["n_children"] > len(terms):
        return 0
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] != LEAF:
            return 0
        terms[n, 0], terms[n, 1] = nodes[child]["mean"], nodes[child]["precision"]
        terms[n, 2], terms[n, 3] = nodes[child]["log_norm"], edges[edge]["weight"]
        n, edge = n + 1, edges[edge]["next"]
    return n


@kernel
def mix_leaves(
    row: int, Z: Array, m: int, values: Array, variable: int, n: int, terms: Array
) -> None:
    """Evaluate a sum of ``n`` univariate leaves, as listed; the bits are those of `log_sums`."""
    aligned_stack()
    weights, least = 0.0, terms[0, 3]
    for c in range(n):
        weights, least = weights + terms[c, 3], min(least, terms[c, 3])
    limit, share = NOTHING + log_positive(least / weights), 1.0 / weights
    for r in range(0, m, WIDTH):
        x = load(Z, variable, r)
        reference = gaussian(x, terms[0, 0], terms[0, 1], terms[0, 2])
        total = spread(terms[0, 3])
        for c in range(1, n):
            log_value = gaussian(x, terms[c, 0], terms[c, 1], terms[c, 2])
            ahead = log_value - reference
            if all_below(ahead, limit):
                continue
            if not all_below(ahead, FAR_AHEAD):
                reference, total = moved(reference, total, log_value)
                ahead = log_value - reference
            total = fma(exp_bounded(ahead), terms[c, 3], total)
        store(values, row, r, reference + log_positive(total * share))


@kernel
def evaluate_terms(
    i: int, nodes: Array, edges: Array, Z: Array, m: int, values: Array, value_rows: Array
) -> None:
    """Evaluate the leaves of a sum that have rows of their own."""
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if value_rows[child] != NIL:
            evaluate_leaf(child, value_rows[child], nodes, Z, m, values)
        edge = edges[edge]["next"]


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
