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
    multivariate_of_row,
)
from ._jit import kernel
from ._lanes import WIDTH, Value, aligned_stack, all_below, choose, fma, load, padded, spread, store
from ._layout import FIRST, LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, ROOT, SUM, Array
from ._math import exp_bounded, log_positive
from ._structure import deepest

FAR_AHEAD = 30.0
"""Nats above the reference from which on a term becomes the reference: far from overflow, and so
many that it is seldom."""

MANY = 8
"""Children of a sum beyond which it is worth a look which of them are nothing."""

NOTHING = -38.0
"""Logarithm of a share that added to a number leaves it as it is: less than 2**-54."""

FEW = 2
"""Variables up to which much of a mixture is nothing to rows side by side, once these are alike:
enough that it is worth a look."""


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
def new_block(d: int, m: int) -> Array:
    """Room for ``m`` rows of ``d`` variables, side by side."""
    return np.zeros((d, padded(m)))


@kernel
def log_densities(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    n_values: int,
    kept: Array,
    result: Array,
) -> Array:
    """Fill ``result`` (n,) with the root's log-density of the columns of ``Z`` (d, n).

    Goes by blocks of ``m`` columns and returns the last one's ``values`` (n_values, .), which like
    ``kept`` are those of ``evaluate``.
    """
    # made here, as a kernel's arrays do not lie across lines of the cache
    block, values = new_block(Z.shape[0], m), np.empty((n_values, padded(m)))
    root = header[ROOT]
    top = root if m == 1 else row_of(root, 0, kept)
    for start in range(0, Z.shape[1], m):
        n = min(m, Z.shape[1] - start)
        copy_columns(Z, start, n, block)
        # one column that is left over takes another one along
        wide = max(n, min(2, m))
        evaluate(header, nodes, edges, scopes, stats, block, wide, values, kept, NIL)
        for r in range(n):
            result[start + r] = values[top, r]
    return values


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
    kept: Array,
    end: int,
) -> None:
    """Compute log-densities of nodes for the first ``m`` columns of ``Z`` and their rows in values.

    ``Z`` (d, >= padded(m)) and ``values`` have columns for whole lanes; what is in the last ones
    means nothing. A node's row of ``values`` is what ``kept`` (nodes,) says. Those that keep none
    (NIL, or all if ``kept`` is empty) share the row of their level, one of the first
    ``deepest(d)``, of which the first is the root's in the end: what the nearest cache has room
    for. One column alone gives each node the row of its index. Rows of univariate leaves under
    products are left alone.

    The sum node ``end`` is left out; NIL for none. Missing values (NaN) are marginalised: a leaf
    without an observed variable counts as 1.
    """
    if m == 1:
        evaluate_row(header, nodes, edges, scopes, stats, Z, values, end)
    else:
        evaluate_rows(header, nodes, edges, scopes, stats, Z, m, values, kept, end)


@kernel
def row_of(i: int, level: int, kept: Array) -> int:
    """Row of the values of node ``i``."""
    if len(kept) == 0 or kept[i] == NIL:
        return level
    return int(kept[i])


@kernel
def evaluate_row(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    values: Array,
    end: int,
) -> None:
    """Evaluate one row, node by node as they are listed."""
    d = Z.shape[0]
    scratch, vectors = np.empty((2 * d + 2, 1)), np.empty((d + 1, d))
    ends = ends_of_runs(Z, 1)
    i = header[FIRST]
    while i != end and i != NIL:
        kind = nodes[i]["kind"]
        if kind == PRODUCT:
            evaluate_product_of_row(i, nodes, edges, Z, values)
        elif kind == SUM:
            values[i, 0] = sum_of_row(i, nodes, edges, Z, values)
        elif len(ends) > 0:
            evaluate_incomplete(i, i, nodes, scopes, stats, Z, 1, values, scratch, vectors, ends)
        else:
            values[i, 0] = multivariate_of_row(i, nodes, scopes, stats, Z, scratch)
        i = nodes[i]["next"]


@kernel
def evaluate_rows(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    values: Array,
    kept: Array,
    end: int,
) -> None:
    """Evaluate rows side by side: down to what has no inner children, and up again.

    What a child comes to is taken into its parent at once, while it is in the nearest cache. A
    sum's row of ``values`` is the log-density that it is measured by so far; that of ``totals``
    for its level is the weighted sum of the densities as multiples of that one.
    """
    d, depth = Z.shape[0], deepest(Z.shape[0])
    scratch, vectors = np.empty((2 * d + 2, padded(m))), np.empty((d + 1, d))
    variables, forms, ends = np.empty(d, np.int64), np.empty(3 * d), ends_of_runs(Z, m)
    path, totals = np.empty((depth, 2), np.int64), np.empty((depth, padded(m)))
    weights, least = np.empty(depth), np.empty(depth)
    i, level = header[ROOT], 0
    while True:
        row, edge, kind = row_of(i, level, kept), nodes[i]["first_edge"], nodes[i]["kind"]
        if kind == LEAF:
            evaluate_leaf(i, row, nodes, Z, m, values)
        elif kind == PRODUCT:
            n = list_leaves(i, nodes, edges, variables, forms)
            multiply_leaves(row, Z, m, values, n, variables, forms, len(ends) == 0)
            edge = inner_edge(edge, nodes, edges)
        elif kind == MULTIVARIATE_LEAF and len(ends) > 0:
            evaluate_incomplete(i, row, nodes, scopes, stats, Z, m, values, scratch, vectors, ends)
        elif kind == MULTIVARIATE_LEAF:
            evaluate_multivariate(i, row, nodes, scopes, stats, Z, m, values, scratch)
        path[level, 0], path[level, 1] = i, edge
        while edge == NIL:
            if level == 0:
                return
            level -= 1
            i, edge, child_row = path[level, 0], path[level, 1], row
            row = row_of(i, level, kept)
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
def add_row(child_row: int, row: int, m: int, values: Array) -> None:
    """Multiply a product by one of its children."""
    for r in range(0, m, WIDTH):
        store(values, row, r, load(values, row, r) + load(values, child_row, r))


@kernel
def begin_sum(
    child_row: int, row: int, level: int, m: int, weight: float, values: Array, totals: Array
) -> None:
    """Measure a sum by its first child."""
    for r in range(0, m, WIDTH):
        store(values, row, r, load(values, child_row, r))
        store(totals, level, r, spread(weight))


@kernel
def add_term(
    child_row: int,
    row: int,
    level: int,
    m: int,
    weight: float,
    limit: float,
    values: Array,
    totals: Array,
) -> None:
    """Add a weighted child to a sum, but where it is less than ``limit`` nats beside it."""
    aligned_stack()
    for r in range(0, m, WIDTH):
        log_value, reference = load(values, child_row, r), load(values, row, r)
        ahead, total = log_value - reference, load(totals, level, r)
        if all_below(ahead, limit):
            continue
        if not all_below(ahead, FAR_AHEAD):
            reference, total = moved(reference, total, log_value)
            store(values, row, r, reference)
            ahead = log_value - reference
        store(totals, level, r, fma(exp_bounded(ahead), weight, total))


@kernel
def end_sum(row: int, level: int, m: int, share: float, values: Array, totals: Array) -> None:
    """Turn totals into a log-density, where weights count as multiples of 1 / ``share``."""
    # a loop of its own, so that no logarithm waits for the exponentials before it
    for r in range(0, m, WIDTH):
        log_total = log_positive(load(totals, level, r) * share)
        store(values, row, r, load(values, row, r) + log_total)


@kernel
def evaluate_leaf(i: int, row: int, nodes: Array, Z: Array, m: int, values: Array) -> None:
    """Univariate Gaussian leaf."""
    variable = nodes[i]["scope"]
    mean, precision, log_norm = nodes[i]["mean"], nodes[i]["precision"], nodes[i]["log_norm"]
    if m == 1:
        values[row, 0] = gaussian(Z[variable, 0], mean, precision, log_norm)
        return
    for r in range(0, m, WIDTH):
        store(values, row, r, gaussian(load(Z, variable, r), mean, precision, log_norm))


@kernel
def inner_edge(edge: int, nodes: Array, edges: Array) -> int:
    """Find the next edge, from this one on, to a child that is no univariate leaf, or NIL."""
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


@kernel
def evaluate_product_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> None:
    """Sum of the log-densities of a product's children for one row."""
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
    """Add the log-densities of a product's children that are no univariate leaves."""
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] != LEAF:
            values[i, 0] += values[child, 0]
        edge = edges[edge]["next"]


@kernel
def sum_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> float:
    """Log of the weighted mean of the densities of a sum's children for one row."""
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


@kernel
def moved(reference: Value, total: Value, log_value: Value) -> tuple[Value, Value]:
    """Return references and totals of rows whose reference a new term is far ahead of, or not.

    It becomes the reference where it is. The term itself is not added.
    """
    top = choose(log_value - reference < FAR_AHEAD, reference, log_value)
    return top, total * exp_bounded(reference - top)


@kernel
def add_term_of_row(
    reference: float, total: float, weight: float, log_value: float
) -> tuple[float, float]:
    """Add weight e**log_value to total e**reference.

    Without a branch, which could not be foretold for one row, and to the bits that rows side by
    side get.
    """
    ahead = log_value - reference
    behind = ahead < FAR_AHEAD
    scale = exp_bounded(choose(behind, ahead, -ahead))
    total = choose(behind, fma(scale, weight, total), total * scale + weight)
    return choose(behind, reference, log_value), total
