"""Kernels of the downward pass of inference: every variable given all the others, at once.

The density is linear in the leaves of one variable, so that the derivative of the root with
respect to each of them tells the density without that variable: one pass up and one down
instead of one evaluation for each variable. A variable given the others is a mixture of one
Gaussian a leaf, whose weight is that derivative.
"""

from __future__ import annotations

import numpy as np

from ._conditionals import add_conditionals
from ._gaussian import ends_of_runs, gaussian
from ._jit import kernel
from ._layout import LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, SUM, Array
from ._math import log_positive
from ._mixtures import CENTRE, LARGEST, MEAN, SMALLEST, SPREAD, TOTAL, add_component


@kernel
def leave_one_out(
    live: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    values: Array,
    downs: Array,
    mixtures: Array,
) -> None:
    """Fill ``mixtures`` with each variable given the others, for ``m`` columns of ``Z`` (d, >= m).

    ``values`` (nodes, >= m) are those of the upward pass. ``downs``, of the same shape, is scratch
    for the log-derivatives of the root with respect to children of products. Those of children of
    sums differ from the sum's own by a weight: they are kept as another node's row and a number.
    ``live`` lists all nodes, children before parents, in an order that comes of the structure
    alone: sums over leaves are rounded by it, and must not change with where nodes lie.
    The network must be a tree.
    """
    d, root = Z.shape[0], live[-1]
    children, product, component = np.empty(d, np.int64), np.empty(m), np.empty((2, m))
    weights, before = np.empty((d, m)), np.empty((d, m))
    scratch, vectors = np.empty((2 * d + 2, m)), np.empty((d + 1, d))
    ends = ends_of_runs(Z, m)
    row, log_weight = np.empty(len(values), np.int64), np.zeros(len(values))
    mixtures[:] = 0.0
    mixtures[LARGEST] = SMALLEST
    downs[root, :m] = 0.0
    row[root] = root
    for i in live[::-1]:
        kind = nodes[i]["kind"]
        if kind == SUM:
            descend_sum(i, nodes, edges, m, downs, row, log_weight, weights, component, mixtures)
        elif kind == PRODUCT:
            add_constant(downs, row[i], log_weight[i], m, product)
            multiply_out(i, nodes, edges, Z, m, values, children, product, before, weights)
            for c in range(nodes[i]["n_children"]):
                child = children[c]
                row[child] = child
                if nodes[child]["kind"] == LEAF:
                    add_leaf(child, nodes, weights, c, component, m, mixtures)
                else:
                    for r in range(m):
                        downs[child, r] = weights[c, r]
        elif kind == MULTIVARIATE_LEAF:
            add_constant(downs, row[i], log_weight[i], m, product)
            add_conditionals(
                i, nodes, scopes, stats, Z, m, product, weights, component, scratch,
                vectors, ends, mixtures,
            )  # fmt: skip
    for v in range(d):
        for r in range(m):
            mixtures[LARGEST, v, r] += log_positive(mixtures[TOTAL, v, r])


@kernel
def add_constant(rows: Array, i: int, constant: float, m: int, result: Array) -> None:
    """Set ``result`` (m,) to row ``i`` of ``rows`` and a constant more."""
    for r in range(m):
        result[r] = rows[i, r] + constant


@kernel
def descend_sum(
    i: int,
    nodes: Array,
    edges: Array,
    m: int,
    downs: Array,
    row: Array,
    log_weight: Array,
    weights: Array,
    component: Array,
    mixtures: Array,
) -> None:
    """Give each child of a sum the parent's derivative times its weight."""
    total = 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        total += edges[edge]["weight"]
        edge = edges[edge]["next"]
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        row[child] = row[i]
        log_weight[child] = log_weight[i] + log_positive(edges[edge]["weight"] / total)
        if nodes[child]["kind"] == LEAF:
            add_constant(downs, row[i], log_weight[child], m, weights[0])
            add_leaf(child, nodes, weights, 0, component, m, mixtures)
        edge = edges[edge]["next"]


@kernel
def multiply_out(
    i: int,
    nodes: Array,
    edges: Array,
    Z: Array,
    m: int,
    values: Array,
    children: Array,
    product: Array,
    before: Array,
    weights: Array,
) -> None:
    """List the children of a product, last first, and fill ``weights`` with the derivative by each.

    That is the parent's, which ``product`` (m,) is at first, times the values of the siblings:
    multiplied up from both ends rather than divided out of the whole, which would lose
    the digits of everything that stands beside one very unlikely child. The list is in reverse as
    the compiler makes no vector instructions of a loop down over rows.
    """
    edge, c = nodes[i]["first_edge"], nodes[i]["n_children"]
    while edge != NIL:
        c -= 1
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            variable, mean = nodes[child]["scope"], nodes[child]["mean"]
            precision, log_norm = nodes[child]["precision"], nodes[child]["log_norm"]
            for r in range(m):
                weights[c, r] = gaussian(Z[variable, r], mean, precision, log_norm)
        else:
            for r in range(m):
                weights[c, r] = values[child, r]
        for r in range(m):
            before[c, r] = product[r]
            product[r] += weights[c, r]
        children[c] = child
        edge = edges[edge]["next"]
    for r in range(m):
        product[r] = 0.0
    for c in range(nodes[i]["n_children"]):
        for r in range(m):
            value = weights[c, r]
            weights[c, r] = before[c, r] + product[r]
            product[r] += value


@kernel
def add_leaf(
    i: int, nodes: Array, weights: Array, c: int, component: Array, m: int, mixtures: Array
) -> None:
    """Merge a univariate leaf with row ``c`` of ``weights`` into its variable's mixture."""
    for r in range(m if len(mixtures) > MEAN else 0):
        component[CENTRE, r] = nodes[i]["mean"]
        component[SPREAD, r] = 1.0 / nodes[i]["precision"]
    add_component(nodes[i]["scope"], weights, c, component, m, mixtures)
