"""Kernels of the upward pass: the log-density of every node for a block of rows.

Blocks are stored variable by variable, ``Z`` of shape (d, m), so that the innermost loop runs
over rows. Each row is computed by the same operations in the same order whatever the block, so
a row's bits never depend on its neighbours.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel
from ._layout import (
    DEPTH,
    LEAF,
    MULTIVARIATE_LEAF,
    N_ORDERED,
    NIL,
    PRODUCT,
    ROOT,
    SUM,
    Array,
)
from ._math import exp_nonpositive, fma, log_positive

LOG_2PI = math.log(2.0 * math.pi)


@kernel
def order_nodes(header: Array, nodes: Array, edges: Array, order: Array, stack: Array) -> None:
    """List the nodes to evaluate, all but univariate leaves; note their number and the depth."""
    n, depth = list_nodes(header[ROOT], nodes, edges, order, stack, False)
    header[N_ORDERED] = n
    header[DEPTH] = depth


@kernel
def list_nodes(
    root: int, nodes: Array, edges: Array, result: Array, stack: Array, with_leaves: bool
) -> tuple[int, int]:
    """List nodes children first; return their number and the longest path's.

    Univariate leaves are listed on demand: their parents evaluate them.
    """
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
        depth = max(depth, height + 1)
        if with_leaves or nodes[child]["kind"] != LEAF:
            stack[height, 0] = child
            stack[height, 1] = nodes[child]["first_edge"]
            height += 1
    return n, depth


@kernel
def copy_columns(Z: Array, start: int, m: int, block: Array) -> None:
    """Copy ``m`` columns of ``Z`` from ``start`` on to the front of ``block``."""
    for v in range(Z.shape[0]):
        for r in range(m):
            block[v, r] = Z[v, start + r]


@kernel
def log_densities(
    header: Array,
    order: Array,
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
        evaluate(header, order, nodes, edges, scopes, stats, block, m, values)
        for r in range(m):
            result[start + r] = values[header[ROOT], r]


@kernel
def evaluate(
    header: Array,
    order: Array,
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
    scratch = np.empty(m)
    for position in range(header[N_ORDERED]):
        i = order[position]
        kind = nodes[i]["kind"]
        if m == 1 and kind == PRODUCT:
            values[i, 0] = product_of_row(i, nodes, edges, Z, values)
        elif m == 1 and kind == SUM:
            values[i, 0] = sum_of_row(i, nodes, edges, Z, values)
        elif kind == PRODUCT:
            evaluate_product(i, nodes, edges, Z, m, values)
        elif kind == SUM:
            evaluate_sum(i, nodes, edges, Z, m, values, scratch)
        elif kind == MULTIVARIATE_LEAF:
            evaluate_multivariate(i, nodes, scopes, stats, Z, m, values, scratch)


@kernel
def evaluate_leaf(i: int, nodes: Array, Z: Array, m: int, values: Array) -> None:
    """Univariate Gaussian leaf."""
    variable = nodes[i]["scope"]
    mean, half, log_norm = nodes[i]["mean"], -0.5 * nodes[i]["precision"], nodes[i]["log_norm"]
    for r in range(m):
        dx = Z[variable, r] - mean
        density = fma(half * dx, dx, log_norm)
        values[i, r] = density if dx == dx else 0.0


@kernel
def product_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> float:
    """Do the same as ``evaluate_product`` for one row, without loops of one round."""
    total = 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            dx = Z[nodes[child]["scope"], 0] - nodes[child]["mean"]
            density = fma(-0.5 * nodes[child]["precision"] * dx, dx, nodes[child]["log_norm"])
            total += density if dx == dx else 0.0
        else:
            total += values[child, 0]
        edge = edges[edge]["next"]
    return total


@kernel
def sum_of_row(i: int, nodes: Array, edges: Array, Z: Array, values: Array) -> float:
    """Do the same as ``evaluate_sum`` for one row, without loops of one round."""
    best = -np.inf
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            evaluate_leaf(child, nodes, Z, 1, values)
        best = max(best, values[child, 0])
        edge = edges[edge]["next"]
    total, weighted = 0.0, 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        weight = edges[edge]["weight"]
        total += weight
        distance = values[edges[edge]["child"], 0] - best
        weighted = fma(weight, exp_nonpositive(distance), weighted)
        edge = edges[edge]["next"]
    return best + log_positive(weighted / total)


@kernel
def evaluate_product(i: int, nodes: Array, edges: Array, Z: Array, m: int, values: Array) -> None:
    """Sum of the children's log-densities, those of univariate leaves computed on the way."""
    for r in range(m):
        values[i, r] = 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            variable = nodes[child]["scope"]
            mean, log_norm = nodes[child]["mean"], nodes[child]["log_norm"]
            half = -0.5 * nodes[child]["precision"]
            for r in range(m):
                dx = Z[variable, r] - mean
                density = fma(half * dx, dx, log_norm)
                values[i, r] += density if dx == dx else 0.0
        else:
            for r in range(m):
                values[i, r] += values[child, r]
        edge = edges[edge]["next"]


@kernel
def evaluate_sum(
    i: int,
    nodes: Array,
    edges: Array,
    Z: Array,
    m: int,
    values: Array,
    scratch: Array,
) -> None:
    """Log of the weighted mean of the children's densities, scaled by the largest of them."""
    for r in range(m):
        values[i, r] = -np.inf
        scratch[r] = 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            evaluate_leaf(child, nodes, Z, m, values)
        for r in range(m):
            values[i, r] = max(values[i, r], values[child, r])
        edge = edges[edge]["next"]
    total = 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child, weight = edges[edge]["child"], edges[edge]["weight"]
        total += weight
        for r in range(m):
            distance = values[child, r] - values[i, r]
            scratch[r] = fma(weight, exp_nonpositive(distance), scratch[r])
        edge = edges[edge]["next"]
    for r in range(m):
        values[i, r] += log_positive(scratch[r] / total)


@kernel
def evaluate_multivariate(
    i: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    values: Array,
    scratch: Array,
) -> None:
    """Multivariate Gaussian leaf; rows with missing values use the marginal Gaussian."""
    k, scope, block = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    whitening = block + k * (k + 2)
    log_norm = nodes[i]["log_norm"]
    for r in range(m):
        values[i, r] = log_norm
    for a in range(k):
        for r in range(m):
            scratch[r] = 0.0
        for b in range(a + 1):
            variable, mean = scopes[scope + b], stats[block + b]
            factor = stats[whitening + a * k + b]
            for r in range(m):
                scratch[r] = fma(factor, Z[variable, r] - mean, scratch[r])
        for r in range(m):
            values[i, r] = fma(-0.5 * scratch[r], scratch[r], values[i, r])
    for r in range(m):
        if values[i, r] != values[i, r]:
            values[i, r] = marginal_of_column(i, nodes, scopes, stats, Z, r)


@kernel
def marginal_of_column(
    i: int, nodes: Array, scopes: Array, stats: Array, Z: Array, r: int
) -> float:
    """Log-density of a multivariate leaf for a column of ``Z`` with missing values."""
    k, scope, block = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    dx = np.empty(k)
    for a in range(k):
        dx[a] = Z[scopes[scope + a], r] - stats[block + a]
    return marginal_gaussian(stats, block, k, dx, nodes[i]["variance"])


@kernel
def marginal_gaussian(stats: Array, block: int, k: int, dx: Array, ridge: float) -> float:
    """Log-density of the observed part of ``dx`` (NaN = missing) under the block's covariance."""
    observed = np.empty(k, np.int64)
    n = 0
    for a in range(k):
        if dx[a] == dx[a]:
            observed[n] = a
            n += 1
    covariance = block + 2 * k
    factor = np.empty((n, n))
    density = -0.5 * n * LOG_2PI
    y = np.empty(n)
    for a in range(n):
        for b in range(a + 1):
            factor[a, b] = stats[covariance + observed[b] * k + observed[a]]
        factor[a, a] += ridge
        for b in range(a + 1):
            for c in range(b):
                factor[a, b] -= factor[a, c] * factor[b, c]
            if b < a:
                factor[a, b] /= factor[b, b]
        factor[a, a] = math.sqrt(factor[a, a])
        y[a] = dx[observed[a]]
        for b in range(a):
            y[a] -= factor[a, b] * y[b]
        y[a] /= factor[a, a]
        density -= math.log(factor[a, a]) + 0.5 * y[a] * y[a]
    return density
