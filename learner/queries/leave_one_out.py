"""Kernels of the downward pass of inference: every variable given all the others, at once.

The density is linear in the leaves of one variable, so that the derivative of the root with
respect to each of them tells the density without that variable: one pass up and one down
instead of one evaluation for each variable. A variable given the others is a mixture of one
Gaussian a leaf, whose weight is that derivative.
"""

from __future__ import annotations

import numpy as np

from ..network.layout import LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, SUM
from ..network.leaves import gaussian
from ..network.marginals import ends_of_runs
from ..vector.compiler import Array, kernel
from ..vector.lanes import WIDTH, Value, aligned_stack, load, spread, store
from ..vector.math import log_positive
from .conditionals import SCRATCH, add_conditionals
from .mixtures import TOTAL, add_component, clear


@kernel
def keep_siblings(live: Array, nodes: Array, edges: Array, n: int, kept: Array) -> int:
    """Give rows from ``n`` on to the nodes whose values the way down asks for; return the end.

    ``kept`` (nodes,) takes them. These are the root and all children of products but univariate
    leaves.
    """
    kept[:] = NIL
    for i in live:
        edge = nodes[i]["first_edge"] if nodes[i]["kind"] == PRODUCT else NIL
        while edge != NIL:
            child = edges[edge]["child"]
            if nodes[child]["kind"] != LEAF:
                kept[child] = n
                n += 1
            edge = edges[edge]["next"]
    kept[live[-1]] = n
    return n + 1


@kernel
def leave_one_out(
    live: Array,
    kept: Array,
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
    """Fill ``mixtures`` with each variable given the others, for ``m`` columns of ``Z``.

    ``Z`` (d, .), ``values``, which are those of the upward pass with rows as in ``kept``,
    ``downs``, of the same shape, and ``mixtures`` (fields d, .) have columns for whole lanes, even
    if m is 1. ``downs`` is scratch for the log-derivatives of the root with respect to children of
    products. Those of children of sums differ from the sum's own by a weight: they are kept as
    another node's row and a number. ``live`` lists all nodes, children before parents, in an order
    that comes of the structure alone: sums over leaves are rounded by it, and must not change with
    where nodes lie. The network must be a tree.
    """
    d, width, root = Z.shape[0], Z.shape[1], live[-1]
    children, forms = np.empty(2 * d, np.int64), np.empty(3 * d)
    factors = np.empty((2 * d, WIDTH))
    scratch, vectors = np.empty((2 * d + SCRATCH, width)), np.empty((d + 1, d))
    ends = ends_of_runs(Z, m)
    row, log_weight = kept.copy(), np.zeros(len(kept))
    clear(mixtures, d)
    downs[row[root]] = 0.0
    for i in live[::-1]:
        kind = nodes[i]["kind"]
        if kind == SUM:
            descend_sum(i, nodes, edges, m, downs, row, log_weight, d, mixtures)
        elif kind == PRODUCT:
            descend_product(
                i, nodes, edges, Z, m, values, downs, row, log_weight[i], children, forms,
                factors, mixtures,
            )  # fmt: skip
        elif kind == MULTIVARIATE_LEAF:
            add_conditionals(
                i, nodes, scopes, stats, Z, m, downs, row[i], log_weight[i], scratch, vectors,
                ends, mixtures,
            )  # fmt: skip
    for v in range(d):
        for r in range(0, m, WIDTH):
            total = log_positive(load(mixtures, TOTAL * d + v, r))
            store(mixtures, v, r, load(mixtures, v, r) + total)


@kernel
def descend_sum(
    i: int,
    nodes: Array,
    edges: Array,
    m: int,
    downs: Array,
    row: Array,
    log_weight: Array,
    d: int,
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
            for r in range(0, m, WIDTH):
                down = load(downs, row[i], r) + log_weight[child]
                add_leaf(child, nodes, r, down, d, mixtures)
        edge = edges[edge]["next"]


@kernel
def descend_product(
    i: int,
    nodes: Array,
    edges: Array,
    Z: Array,
    m: int,
    values: Array,
    downs: Array,
    row: Array,
    log_weight: float,
    children: Array,
    forms: Array,
    factors: Array,
    mixtures: Array,
) -> None:
    """Give each child of a product the parent's derivative times the values of its siblings.

    They are multiplied up from both ends rather than divided out of the whole, which would lose
    the digits of everything that stands beside one very unlikely child. ``factors`` (2 d, WIDTH)
    is scratch for each child's value and what stands before it.
    """
    aligned_stack()
    d = Z.shape[0]
    n = list_children(i, nodes, edges, row, children, forms)
    for r in range(0, m, WIDTH):
        before, after = load(downs, row[i], r) + log_weight, spread(0.0)
        for c in range(n):
            if children[d + c] == NIL:
                value = load(values, children[c], r)
            else:
                x = load(Z, children[d + c], r)
                value = gaussian(x, forms[3 * c], forms[3 * c + 1], forms[3 * c + 2])
            store(factors, c, 0, value)
            store(factors, d + c, 0, before)
            before = before + value
        for c in range(n - 1, -1, -1):
            down = load(factors, d + c, 0) + after
            after = after + load(factors, c, 0)
            if children[d + c] == NIL:
                store(downs, children[c], r, down)
            else:
                mean, variance = forms[3 * c], 1.0 / forms[3 * c + 1]
                add_component(children[d + c], r, down, mean, variance, d, mixtures)


@kernel
def list_children(
    i: int, nodes: Array, edges: Array, row: Array, children: Array, forms: Array
) -> int:
    """List the rows of a product's children, each with its variable, or NIL if it is no such leaf.

    Variables stand in the second half of ``children`` (2 d,). ``forms`` (3 d,) takes mean,
    precision and constant of leaves. Returns the number of children.
    """
    n, edge = 0, nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        children[n], children[len(children) // 2 + n] = row[child], NIL
        if nodes[child]["kind"] == LEAF:
            children[len(children) // 2 + n] = nodes[child]["scope"]
            forms[3 * n], forms[3 * n + 1] = nodes[child]["mean"], nodes[child]["precision"]
            forms[3 * n + 2] = nodes[child]["log_norm"]
        n += 1
        edge = edges[edge]["next"]
    return n


@kernel
def add_leaf(i: int, nodes: Array, r: int, log_weight: Value, d: int, mixtures: Array) -> None:
    """Merge a univariate leaf into its variable's mixture, for the rows from ``r`` on."""
    mean, variance = nodes[i]["mean"], 1.0 / nodes[i]["precision"]
    add_component(nodes[i]["scope"], r, log_weight, mean, variance, d, mixtures)
