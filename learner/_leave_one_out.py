"""Kernels of the downward pass of inference: every variable given all the others, at once.

The density is linear in the leaves of one variable, so that the derivative of the root with
respect to each of them tells the density without that variable: one pass up and one down
instead of one evaluation for each variable.
"""

from __future__ import annotations

import math

import numpy as np

from ._density import evaluate_leaf, marginal_gaussian
from ._jit import kernel
from ._layout import LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, SUM, Array


@kernel
def derivatives(
    live: Array,
    nodes: Array,
    edges: Array,
    Z: Array,
    m: int,
    values: Array,
    downs: Array,
) -> None:
    """Fill ``downs[node, r]`` with the log-derivative of the root with respect to the node.

    ``live`` lists all nodes children first, ``values`` are those of the upward pass for ``Z``
    (d, >= m). The network must be a tree.
    """
    for i in live:
        if nodes[i]["kind"] == LEAF:
            evaluate_leaf(i, nodes, Z, m, values)
    siblings = np.empty(len(live), np.int64)
    for r in range(m):
        downs[live[-1], r] = 0.0
    for i in live[::-1]:
        kind = nodes[i]["kind"]
        n, total = 0, 0.0
        edge = nodes[i]["first_edge"]
        while edge != NIL:
            siblings[n] = edge
            total += edges[edge]["weight"]
            n, edge = n + 1, edges[edge]["next"]
        if kind == SUM:
            for c in range(n):
                child = edges[siblings[c]]["child"]
                log_weight = math.log(edges[siblings[c]]["weight"] / total)
                for r in range(m):
                    downs[child, r] = downs[i, r] + log_weight
        elif kind == PRODUCT:
            share_among_siblings(i, edges, siblings, n, values, m, downs)


@kernel
def share_among_siblings(
    i: int, edges: Array, siblings: Array, n: int, values: Array, m: int, downs: Array
) -> None:
    """Give each child of a product the parent's derivative times its siblings' values.

    Summed from both ends rather than subtracted from the whole, which would lose the digits of
    everything that stands beside one very unlikely child.
    """
    for r in range(m):
        before = downs[i, r]
        for c in range(n):
            child = edges[siblings[c]]["child"]
            downs[child, r] = before
            before += values[child, r]
        after = 0.0
        for c in range(n - 1, -1, -1):
            child = edges[siblings[c]]["child"]
            downs[child, r] += after
            after += values[child, r]


@kernel
def leave_one_out(
    live: Array,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    downs: Array,
    log_density: Array,
    mean: Array,
    variance: Array,
) -> None:
    """Accumulate, for each variable v and row r, its distribution given the other variables.

    ``log_density[v, r]`` is the log-density of the others; ``mean`` and ``variance`` are moments
    of v given them. All three arrays (d, m) are overwritten.
    """
    for v in range(Z.shape[0]):
        for r in range(m):
            log_density[v, r] = -np.inf
            mean[v, r] = 0.0
            variance[v, r] = 0.0
    for i in live:
        if nodes[i]["kind"] == LEAF:
            v = nodes[i]["scope"]
            centre, spread = nodes[i]["mean"], 1.0 / nodes[i]["precision"]
            for r in range(m):
                add_component(v, r, downs[i, r], centre, spread, log_density, mean, variance)
        elif nodes[i]["kind"] == MULTIVARIATE_LEAF:
            k = nodes[i]["n_scope"]
            for r in range(m):
                for a in range(k):
                    add_conditional(
                        i, a, r, downs[i, r], nodes, scopes, stats, Z,
                        log_density, mean, variance,
                    )  # fmt: skip


@kernel
def add_component(
    v: int,
    r: int,
    log_weight: float,
    centre: float,
    spread: float,
    log_density: Array,
    mean: Array,
    variance: Array,
) -> None:
    """Merge one Gaussian into the running mixture of variable v in row r."""
    old = log_density[v, r]
    top = max(old, log_weight)
    if top == -np.inf:
        return
    new = top + math.log(math.exp(old - top) + math.exp(log_weight - top))
    share = math.exp(log_weight - new)
    shift = centre - mean[v, r]
    mean[v, r] += share * shift
    variance[v, r] += share * (spread - variance[v, r]) + share * (1.0 - share) * shift * shift
    log_density[v, r] = new


@kernel
def add_conditional(
    i: int,
    a: int,
    r: int,
    down: float,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    log_density: Array,
    mean: Array,
    variance: Array,
) -> None:
    """Merge a multivariate leaf's Gaussian of its variable ``a`` given its other ones."""
    k, scope, block = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    ridge = nodes[i]["variance"]
    dx = np.empty(k)
    for b in range(k):
        dx[b] = Z[scopes[scope + b], r] - stats[block + b]
    dx[a] = np.nan
    rest = marginal_gaussian(stats, block, k, dx, ridge)
    centre, spread = conditional_gaussian(stats, block, k, a, dx, ridge)
    add_component(
        scopes[scope + a], r, down + rest, stats[block + a] + centre, spread,
        log_density, mean, variance,
    )  # fmt: skip


@kernel
def conditional_gaussian(
    stats: Array, block: int, k: int, a: int, dx: Array, ridge: float
) -> tuple[float, float]:
    """Mean shift and variance of variable ``a`` given the observed part of ``dx``.

    By elimination: the observed variables are swept out of the row of ``a`` one by one.
    """
    covariance = block + 2 * k
    work = np.empty((k, k))
    for b in range(k):
        for c in range(k):
            work[b, c] = stats[covariance + min(b, c) * k + max(b, c)]
        work[b, b] += ridge
    residual = dx.copy()
    shift = 0.0
    for b in range(k):
        if dx[b] != dx[b]:
            continue
        pivot, innovation = work[b, b], residual[b]
        shift += work[a, b] / pivot * innovation
        for c in range(k):
            if c != b:
                gain = work[c, b] / pivot
                residual[c] -= gain * innovation
                for e in range(k):
                    if e != b:
                        work[c, e] -= gain * work[b, e]
        for c in range(k):
            work[b, c] = 0.0
            work[c, b] = 0.0
    return shift, work[a, a]
