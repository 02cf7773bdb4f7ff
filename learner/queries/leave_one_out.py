"""The downward pass of inference: each variable given all the others, in one pass.

The density is linear in the leaves of one variable. So the derivatives of the root with respect to
these leaves give the density without the variable: one pass up and one pass down the network
replace one evaluation for each variable. Given the others, a variable has a mixture of one Gaussian
for each of its leaves, weighted by the leaf's derivative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.density.given_others import (
    DISTANCE,
    MEAN,
    NORM,
    VARIANCE,
    given_others,
    new_scratch,
)
from faust_oslrau.learner.density.mixtures import add_component, clear, close
from faust_oslrau.learner.network.layout import (
    LEAF,
    MULTIVARIATE_LEAF,
    NIL,
    PRODUCT,
    SUM,
    Pools,
    total_weight,
)
from faust_oslrau.learner.network.leaves import gaussian, parameters
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, load, spread, store
from faust_oslrau.learner.vector.math import log_positive


class Factors(NamedTuple):
    """Scratch for the children of one product over up to d variables.

    Attributes
    ----------
    rows
        Row of each child's value and derivative (d,).
    variables
        Variable of each univariate leaf (d,), NIL for other children.
    forms
        Mean, precision and constant of each univariate leaf (3 d,).
    lanes
        The value of each child, then the product of what precedes it (2 d, WIDTH).
    """

    rows: Array
    variables: Array
    forms: Array
    lanes: Array


@kernel
def assign_rows(live: Array, nodes: Array, edges: Array, n: int, value_rows: Array) -> int:
    """Assign rows from ``n`` on to the nodes whose values the downward pass needs; return the end.

    Fills ``value_rows`` (nodes,), with NIL for the other nodes. The downward pass needs the values
    of the root and of all children of products that are not univariate leaves.
    """
    value_rows[:] = NIL
    for i in live:
        edge = nodes[i]["first_edge"] if nodes[i]["kind"] == PRODUCT else NIL
        while edge != NIL:
            child = edges[edge]["child"]
            if nodes[child]["kind"] != LEAF:
                value_rows[child] = n
                n += 1
            edge = edges[edge]["next"]
    value_rows[live[-1]] = n
    return n + 1


@kernel
def leave_one_out(
    pools: Pools,
    live: Array,
    value_rows: Array,
    Z: Array,
    m: int,
    values: Array,
    downs: Array,
    mixtures: Array,
) -> None:
    """Fill ``mixtures`` with each variable given the others, for ``m`` columns of ``Z``.

    ``Z`` (d, .), the ``values`` of the upward pass, whose rows are those of ``value_rows``,
    ``downs`` of the same shape, and ``mixtures`` (4 d, .) have columns for whole lanes, even
    if ``m`` is 1. ``downs`` is scratch for the log-derivatives of the root with respect to children
    of products. Derivatives with respect to children of sums differ from that of the sum by a
    weight: they are stored as the row of another node and a number.

    ``live`` lists all nodes, children before parents, in an order that depends on the structure
    alone: the rounding of sums over leaves depends on it, and must not change with the indices of
    nodes. The network must be a tree.
    """
    nodes, d, root = pools.nodes, Z.shape[0], live[-1]
    rows, variables = np.empty((2, d), np.int64)
    factors = Factors(rows, variables, np.empty(3 * d), np.empty((2 * d, WIDTH)))
    row, log_weight = value_rows.copy(), np.zeros(len(value_rows))
    clear(mixtures, d)
    downs[row[root]] = 0.0
    for i in live[::-1]:
        kind = nodes[i]["kind"]
        if kind == SUM:
            descend_sum(pools, i, m, downs, row, log_weight, d, mixtures)
        elif kind == PRODUCT:
            descend_product(pools, i, Z, m, values, downs, row, log_weight[i], factors, mixtures)
        elif kind == MULTIVARIATE_LEAF:
            descend_multivariate(pools, i, Z, m, downs, row[i], log_weight[i], mixtures)
    close(mixtures, d, m)


@kernel
def descend_sum(
    pools: Pools,
    i: int,
    m: int,
    downs: Array,
    row: Array,
    log_weight: Array,
    d: int,
    mixtures: Array,
) -> None:
    """Give each child of a sum the sum's derivative times the weight of the child."""
    nodes, edges, total = pools.nodes, pools.edges, total_weight(pools, i)
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        row[child] = row[i]
        log_weight[child] = log_weight[i] + log_positive(edges[edge]["weight"] / total)
        if nodes[child]["kind"] == LEAF:
            mean, variance = nodes[child]["mean"], 1.0 / nodes[child]["precision"]
            for r in range(0, m, WIDTH):
                down = load(downs, row[i], r) + log_weight[child]
                add_component(nodes[child]["scope"], r, down, mean, variance, d, mixtures)
        edge = edges[edge]["next"]


@kernel
def descend_product(
    pools: Pools,
    i: int,
    Z: Array,
    m: int,
    values: Array,
    downs: Array,
    row: Array,
    log_weight: float,
    factors: Factors,
    mixtures: Array,
) -> None:
    """Give each child of a product the product's derivative times the values of its siblings.

    The values of the siblings are multiplied from both ends. Dividing the value of the product by
    that of the child would lose all digits of the others beside one very unlikely child.
    """
    aligned_stack()
    d = Z.shape[0]
    n = list_factors(i, pools.nodes, pools.edges, row, factors)
    rows, variables, forms, lanes = factors
    for r in range(0, m, WIDTH):
        before, after = load(downs, row[i], r) + log_weight, spread(0.0)
        for c in range(n):
            if variables[c] == NIL:
                value = load(values, rows[c], r)
            else:
                x = load(Z, variables[c], r)
                value = gaussian(x, forms[3 * c], forms[3 * c + 1], forms[3 * c + 2])
            store(lanes, c, 0, value)
            store(lanes, d + c, 0, before)
            before = before + value
        for c in range(n - 1, -1, -1):
            down = load(lanes, d + c, 0) + after
            after = after + load(lanes, c, 0)
            if variables[c] == NIL:
                store(downs, rows[c], r, down)
            else:
                mean, variance = forms[3 * c], 1.0 / forms[3 * c + 1]
                add_component(variables[c], r, down, mean, variance, d, mixtures)


@kernel
def descend_multivariate(
    pools: Pools,
    i: int,
    Z: Array,
    m: int,
    downs: Array,
    row: int,
    log_weight: float,
    mixtures: Array,
) -> None:
    """Add the Gaussian of each of a multivariate leaf's variables given its other ones."""
    variables, mean, W = parameters(i, pools.nodes, pools.scopes, pools.stats)
    k = len(variables)
    said, (known, y) = np.zeros((4 * k, WIDTH)), new_scratch(k)
    constant = pools.nodes[i]["log_norm"] + log_weight
    for r in range(0, m, WIDTH):
        for c in range(min(WIDTH, m - r)):
            given_others(Z, variables, r + c, mean, W, r + c > 0, said, c, known, y)
        down = load(downs, row, r) + constant
        for a in range(k):
            distance, norm = load(said, DISTANCE * k + a, 0), load(said, NORM * k + a, 0)
            others = down + norm - 0.5 * distance
            own_mean = load(said, MEAN * k + a, 0)
            own_variance = load(said, VARIANCE * k + a, 0)
            add_component(variables[a], r, others, own_mean, own_variance, len(Z), mixtures)


@kernel
def list_factors(i: int, nodes: Array, edges: Array, row: Array, factors: Factors) -> int:
    """List the children of a product in ``factors``; return their number."""
    rows, variables, forms, _ = factors
    n, edge = 0, nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        rows[n], variables[n] = row[child], NIL
        if nodes[child]["kind"] == LEAF:
            variables[n] = nodes[child]["scope"]
            forms[3 * n], forms[3 * n + 1] = nodes[child]["mean"], nodes[child]["precision"]
            forms[3 * n + 2] = nodes[child]["log_norm"]
        n += 1
        edge = edges[edge]["next"]
    return n
