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
    values: Array,
    result: Array,
) -> None:
    """Fill ``result`` (n,) with the root's log-density of the columns of ``Z`` (d, n).

    Goes block by block, as many columns at a time as ``values`` (nodes, block) has.
    """
    block = new_block(Z.shape[0], values.shape[1])
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
    """Fill ``values[node, r]`` with each node's log-density of column r of ``Z``, for r < m.

    ``Z`` (d, >= padded(m)) and ``values`` (nodes, >= padded(m)) have columns for whole lanes; what
    is in the last ones means nothing. Goes up to node ``end``, which is left out; NIL for all.
    Missing values (NaN) are marginalised: a leaf without an observed variable counts as 1. Rows of
    ``values`` that belong to univariate leaves under products are left alone.
    """
    d = Z.shape[0]
    scratch, vectors = np.empty((2 * d + 2, padded(m))), np.empty((d + 1, d))
    members, numbers = np.empty(d, np.int64), np.empty(3 * d)
    ends = ends_of_runs(Z, m)
    i = header[FIRST]
    while i != end:
        kind = nodes[i]["kind"]
        if kind == MULTIVARIATE_LEAF and len(ends) > 0:
            evaluate_incomplete(i, nodes, scopes, stats, Z, m, values, scratch, vectors, ends)
        elif kind == MULTIVARIATE_LEAF and m == 1:
            values[i, 0] = multivariate_of_row(i, nodes, scopes, stats, Z, scratch)
        elif kind == MULTIVARIATE_LEAF:
            evaluate_multivariate(i, nodes, scopes, stats, Z, m, values, scratch)
        elif kind == PRODUCT and m == 1:
            evaluate_product_of_row(i, nodes, edges, Z, values)
        elif kind == PRODUCT:
            n = list_factors(i, nodes, edges, members, numbers)
            n_children = nodes[i]["n_children"]
            multiply(i, Z, m, values, n, n_children, members, numbers, len(ends) == 0)
        elif kind == SUM and m == 1:
            values[i, 0] = sum_of_row(i, nodes, edges, Z, values)
        elif kind == SUM:
            evaluate_sum(i, nodes, edges, Z, m, values, scratch)
        i = nodes[i]["next"]


@kernel
def evaluate_leaf(i: int, nodes: Array, Z: Array, m: int, values: Array) -> None:
    """Univariate Gaussian leaf."""
    variable = nodes[i]["scope"]
    mean, precision, log_norm = nodes[i]["mean"], nodes[i]["precision"], nodes[i]["log_norm"]
    if m == 1:
        values[i, 0] = gaussian(Z[variable, 0], mean, precision, log_norm)
        return
    for r in range(0, m, WIDTH):
        store(values, i, r, gaussian(load(Z, variable, r), mean, precision, log_norm))


@kernel
def list_factors(i: int, nodes: Array, edges: Array, factors: Array, forms: Array) -> int:
    """List a product's children: variables of univariate leaves first, the other nodes behind.

    ``forms`` (>= 3 n) takes mean, factor and constant of each leaf's log-density
    factor * (x - mean)**2 + constant. Returns the number n of leaves.
    """
    n, last, edge = 0, nodes[i]["n_children"] - 1, nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            factors[n] = nodes[child]["scope"]
            forms[3 * n], forms[3 * n + 1] = nodes[child]["mean"], -0.5 * nodes[child]["precision"]
            forms[3 * n + 2] = nodes[child]["log_norm"]
            n += 1
        else:
            factors[last] = child
            last -= 1
        edge = edges[edge]["next"]
    return n


@kernel
def multiply(
    i: int,
    Z: Array,
    m: int,
    values: Array,
    n: int,
    n_children: int,
    factors: Array,
    forms: Array,
    complete: bool,
) -> None:
    """Sum of the log-densities of a product's children, ``n`` of them leaves, as listed.

    The bits are the same whether some rows lack values or none does, which ``complete`` says.
    """
    aligned_stack()
    constant = 0.0
    for c in range(n):
        constant += forms[3 * c + 2]
    # two lanes at a time, where that is simple, as one alone waits for its own operations
    pairs = m // (2 * WIDTH) if complete and n == n_children else 0
    for r in range(0, pairs * 2 * WIDTH, 2 * WIDTH):
        first, second = spread(0.0), spread(0.0)
        for c in range(n):
            v, mean, factor = factors[c], forms[3 * c], forms[3 * c + 1]
            dx, dy = mean - load(Z, v, r), mean - load(Z, v, r + WIDTH)
            first, second = fma(factor * dx, dx, first), fma(factor * dy, dy, second)
        store(values, i, r, first + constant)
        store(values, i, r + WIDTH, second + constant)
    for r in range(pairs * 2 * WIDTH, m, WIDTH):
        total, log_norm = spread(0.0), spread(constant)
        if complete:
            for c in range(n):
                dx = forms[3 * c] - load(Z, factors[c], r)
                total = fma(forms[3 * c + 1] * dx, dx, total)
        else:
            log_norm = spread(0.0)
            for c in range(n):
                dx = forms[3 * c] - load(Z, factors[c], r)
                observed = dx == dx
                total = choose(observed, fma(forms[3 * c + 1] * dx, dx, total), total)
                log_norm = log_norm + choose(observed, forms[3 * c + 2], spread(0.0))
        total = total + log_norm
        for c in range(n_children - 1, n - 1, -1):
            total = total + load(values, factors[c], r)
        store(values, i, r, total)


@kernel
def evaluate_product_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> None:
    """Do the same for one row, without lists and loops of one round."""
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
        multiply_others_of_row(i, nodes, edges, values)


@kernel
def multiply_others_of_row(i: int, nodes: Array, edges: Array, values: Array) -> None:
    """Add the log-densities of a product's children that are no univariate leaves."""
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] != LEAF:
            values[i, 0] += values[child, 0]
        edge = edges[edge]["next"]


@kernel
def evaluate_sum(
    i: int, nodes: Array, edges: Array, Z: Array, m: int, values: Array, totals: Array
) -> None:
    """Log of the weighted mean of the children's densities.

    The node's row of ``values`` is the log-density that the sum is measured by so far; the first
    row of ``totals`` is the weighted sum of the densities as multiples of that one.
    """
    aligned_stack()
    some_nothing = nodes[i]["n_children"] > MANY and nodes[i]["n_scope"] <= FEW
    edge, weights, least = nodes[i]["first_edge"], 0.0, np.inf
    while edge != NIL:
        child, weight = edges[edge]["child"], edges[edge]["weight"]
        if nodes[child]["kind"] == LEAF:
            evaluate_leaf(child, nodes, Z, m, values)
        if edge == nodes[i]["first_edge"]:
            for r in range(0, m, WIDTH):
                store(values, i, r, load(values, child, r))
                store(totals, 0, r, spread(weight))
        else:
            # a total is never below the least weight
            limit = NOTHING + log_positive(least / weight) if some_nothing else -np.inf
            # not a kernel of its own: arrays passed to it would be counted in and out each time
            for r in range(0, m, WIDTH):
                log_value, reference = load(values, child, r), load(values, i, r)
                ahead = log_value - reference
                if all_below(ahead, limit):
                    continue
                if not all_below(ahead, FAR_AHEAD):
                    top, total = moved(reference, load(totals, 0, r), log_value)
                    store(values, i, r, top)
                    store(totals, 0, r, total)
                    ahead = log_value - top
                store(totals, 0, r, fma(exp_bounded(ahead), weight, load(totals, 0, r)))
        weights, least = weights + weight, min(least, weight)
        edge = edges[edge]["next"]
    share = 1.0 / weights
    # a loop of its own, so that no logarithm waits for the exponentials before it
    for r in range(0, m, WIDTH):
        log_total = log_positive(load(totals, 0, r) * share)
        store(values, i, r, load(values, i, r) + log_total)


@kernel
def sum_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> float:
    """Do the same as ``evaluate_sum`` for one row, without loops of one round."""
    reference, total, weights = -np.inf, 0.0, 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child, weight = edges[edge]["child"], edges[edge]["weight"]
        if nodes[child]["kind"] == LEAF:
            evaluate_leaf(child, nodes, Z, 1, values)
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
