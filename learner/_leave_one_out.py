"""Kernels of the downward pass of inference: every variable given all the others, at once.

The density is linear in the leaves of one variable, so that the derivative of the root with
respect to each of them tells the density without that variable: one pass up and one down
instead of one evaluation for each variable.
"""

from __future__ import annotations

import math

import numpy as np

from ._density import evaluate_leaf
from ._gaussian import conditional
from ._jit import kernel
from ._layout import LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, SUM, Array
from ._math import choose, exp_nonpositive, fma, log_positive


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
    product = np.empty(m)
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
            share_among_siblings(i, edges, siblings[:n], values, m, downs, product)


@kernel
def share_among_siblings(
    i: int, edges: Array, siblings: Array, values: Array, m: int, downs: Array, product: Array
) -> None:
    """Give each child of a product the parent's derivative times its siblings' values.

    Multiplied up from both ends (``product`` (m,) is the one so far) rather than divided out of
    the whole, which would lose the digits of everything that stands beside one very unlikely
    child.
    """
    for r in range(m):
        product[r] = downs[i, r]
    for sibling in siblings:
        child = edges[sibling]["child"]
        for r in range(m):
            downs[child, r] = product[r]
            product[r] += values[child, r]
    for r in range(m):
        product[r] = 0.0
    for sibling in siblings[::-1]:
        child = edges[sibling]["child"]
        for r in range(m):
            downs[child, r] += product[r]
            product[r] += values[child, r]


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
    total = np.zeros(Z.shape)
    log_density[:], mean[:], variance[:] = -np.inf, 0.0, 0.0
    for i in live:
        if nodes[i]["kind"] == LEAF:
            v = nodes[i]["scope"]
            centre, spread = nodes[i]["mean"], 1.0 / nodes[i]["precision"]
            for r in range(m):
                log_density[v, r], total[v, r], mean[v, r], variance[v, r] = add_component(
                    downs[i, r], centre, spread,
                    log_density[v, r], total[v, r], mean[v, r], variance[v, r],
                )  # fmt: skip
        elif nodes[i]["kind"] == MULTIVARIATE_LEAF:
            for r in range(m):
                add_conditionals(
                    i, r, nodes, scopes, stats, Z, downs, log_density, total, mean, variance
                )
    for v in range(Z.shape[0]):
        for r in range(m):
            log_density[v, r] += log_positive(total[v, r])


@kernel
def add_component(
    log_weight: float,
    centre: float,
    spread: float,
    largest: float,
    total: float,
    mean: float,
    variance: float,
) -> tuple[float, float, float, float]:
    """Merge one Gaussian into a mixture of weight total e**largest with a mean and a variance."""
    scale = exp_nonpositive(-abs(log_weight - largest))
    ahead = log_weight > largest
    total = choose(ahead, fma(total, scale, 1.0), total + scale)
    share = choose(ahead, 1.0, scale) / total
    shift = centre - mean
    mean += share * shift
    variance += share * (spread - variance + (1.0 - share) * shift * shift)
    return choose(ahead, log_weight, largest), total, mean, variance


@kernel
def add_conditionals(
    i: int,
    r: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    downs: Array,
    log_density: Array,
    total: Array,
    mean: Array,
    variance: Array,
) -> None:
    """Merge a multivariate leaf's Gaussians, of each variable given its other ones."""
    k, scope, block = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    dx, n_missing = np.empty(k), 0
    for a in range(k):
        dx[a] = Z[scopes[scope + a], r] - stats[block + a]
        n_missing += dx[a] != dx[a]
    for a in range(k):
        v = scopes[scope + a]
        rest, centre, spread = conditional(i, a, nodes, stats, dx, n_missing)
        log_density[v, r], total[v, r], mean[v, r], variance[v, r] = add_component(
            downs[i, r] + rest, stats[block + a] + centre, spread,
            log_density[v, r], total[v, r], mean[v, r], variance[v, r],
        )  # fmt: skip
