"""Kernels of the structure update: the paper's two ways to correlate children of a product."""

from __future__ import annotations

import math

import numpy as np

from ._density import evaluate_leaf
from ._gaussian import gaussian
from ._jit import kernel
from ._layout import (
    CLEAR_WIN,
    FREE,
    LEAF,
    MIXTURES,
    MULTIVARIATE_LEAF,
    MULTIVARIATE_LEAVES,
    NIL,
    PRODUCT,
    PRODUCT_SCOPES,
    PRODUCT_STATS,
    PRODUCTS,
    ROOT,
    SCOPES_TOP,
    SUM,
    Array,
    LearningRule,
)
from ._moments import add_counts, refresh_multivariate
from ._structure import (
    add_edge,
    add_factored_model,
    copy_statistics,
    free_node,
    join_scopes,
    new_block,
    new_node,
    remove_edge,
)

CORRELATION_VARIANCE_FLOOR = 1e-4
"""Variances below it, in standardised units, are noise to a correlation (authors' code)."""

MIXTURE_OVERHEAD = 3
"""Nodes of a new mixture beside its leaves: a sum and two products."""


@kernel
def choose_merges(
    p: int,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    rule: LearningRule,
    owner: Array,
    group: Array,
) -> tuple[int, int, int]:
    """Choose which children of product ``p`` to join, the most correlated first (Algorithm 2).

    For each position of the product's scope, ``owner`` gets the child that holds the variable
    and ``group`` one child for all of those that are to share a multivariate leaf. Returns the
    number of joints, and the two children of a mixture if the first pair is too large for a
    leaf.
    """
    k = nodes[p]["n_scope"]
    matrix = nodes[p]["stats"] + 2 * k
    find_owners(p, nodes, edges, scopes, owner)
    inverse = np.empty(k)
    for a in range(k):
        group[a] = owner[a]
        variance = max(stats[matrix + a * k + a], CORRELATION_VARIANCE_FLOOR)
        inverse[a] = 1.0 / math.sqrt(variance)
    for n_joined in range(rule.merges_per_batch):
        best, first, second = -1.0, NIL, NIL
        for a in range(k):
            for b in range(a + 1, k):
                correlation = abs(stats[matrix + a * k + b]) * inverse[a] * inverse[b]
                if correlation > best and group[a] != group[b]:
                    best, first, second = correlation, group[a], group[b]
        if best < rule.corr_threshold:
            return n_joined, NIL, NIL
        if joint_size(nodes, group, first, second) > rule.max_leaf_vars:
            return (0, first, second) if n_joined == 0 else (n_joined, NIL, NIL)
        for a in range(k):
            if group[a] == second:
                group[a] = first
    return rule.merges_per_batch, NIL, NIL


@kernel
def find_owners(p: int, nodes: Array, edges: Array, scopes: Array, owner: Array) -> None:
    """Fill ``owner`` with the child of product ``p`` that holds each variable of its scope."""
    scope = nodes[p]["scope"]
    edge = nodes[p]["first_edge"]
    while edge != NIL:
        child, position = edges[edge]["child"], 0
        for b in range(nodes[child]["n_scope"]):
            while scopes[scope + position] != scopes[nodes[child]["scope"] + b]:
                position += 1
            owner[position] = child
        edge = edges[edge]["next"]


@kernel
def joint_size(nodes: Array, group: Array, first: int, second: int) -> int:
    """Count the variables of two groups; past all bounds if one of them is no leaf."""
    if nodes[first]["n_children"] > 0 or nodes[second]["n_children"] > 0:
        return 2**31 - 1
    size = 0
    for a in range(len(group)):
        size += group[a] == first or group[a] == second
    return size


@kernel
def join_groups(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    rows: Array,
    product: int,
    owner: Array,
    group: Array,
    lo: int,
    hi: int,
    complete: bool,
    variance_floor: float,
    leaves: Array,
) -> int:
    """Algorithm 4, createMultiVarGaussian: replace each group of children by one leaf.

    A leaf takes the product's statistics, this batch included. Fills ``leaves`` and returns
    their number; the caller hangs them up.
    """
    n_leaves = 0
    for a in range(len(group)):
        if group[a] == NIL or not is_joined(owner, group, a):
            continue
        start, k, joined = header[SCOPES_TOP], 0, group[a]
        for b in range(len(group)):
            if group[b] == joined:
                scopes[start + k] = scopes[nodes[product]["scope"] + b]
                k += 1
                if nodes[owner[b]]["kind"] != FREE:
                    remove_edge(header, nodes, edges, product, owner[b])
                    free_node(header, nodes, owner[b])
                group[b] = NIL
        header[SCOPES_TOP] += k
        leaf = new_leaf(header, nodes, scopes, stats, product, start, k)
        block = nodes[leaf]["stats"]
        add_counts(stats, block, scopes, start, k, Z, rows, lo, hi, complete)
        nodes[leaf]["count"] += hi - lo
        refresh_multivariate(leaf, nodes, stats, variance_floor)
        leaves[n_leaves] = leaf
        n_leaves += 1
    return n_leaves


@kernel
def is_joined(owner: Array, group: Array, a: int) -> bool:
    """Whether the group at position ``a`` has more than one child."""
    others = 0
    for b in range(len(group)):
        others += group[b] == group[a] and owner[b] != owner[a]
    return others > 0


@kernel
def new_leaf(
    header: Array, nodes: Array, scopes: Array, stats: Array, product: int, scope: int, k: int
) -> int:
    """Make a multivariate leaf with its part of the product's statistics and counts."""
    leaf = new_node(header, nodes, MULTIVARIATE_LEAF, scope, k, product)
    nodes[leaf]["count"] = nodes[product]["count"]
    nodes[leaf]["stats"] = new_block(header, stats, 2 * k * (k + 1))
    copy_statistics(nodes, scopes, stats, product, leaf)
    header[MULTIVARIATE_LEAVES] += 1
    return leaf


@kernel
def dissolve_single(header: Array, nodes: Array, edges: Array, product: int, place: int) -> None:
    """Put the only child of a product into its place (paper, section 3.2)."""
    if nodes[product]["n_children"] > 1:
        return
    child = edges[nodes[product]["first_edge"]]["child"]
    remove_edge(header, nodes, edges, product, child)
    if place == NIL:
        header[ROOT] = child
    else:
        edges[place]["child"] = child
    free_node(header, nodes, product)


@kernel
def structure_bound(header: Array) -> tuple[int, int, int, int]:
    """Nodes, edges, scope entries and statistics that one mini-batch can add at the most.

    Each product merges one pair a batch: into a mixture of two products and as many leaves as
    the joint scope has variables.
    """
    n, k = header[PRODUCTS], header[PRODUCT_SCOPES]
    return k + 3 * n, k + 5 * n, k, 2 * header[PRODUCT_STATS]


@kernel
def create_mixture(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    rows: Array,
    product: int,
    a: int,
    b: int,
    lo: int,
    hi: int,
    variance_floor: float,
) -> tuple[int, int]:
    """Algorithm 3, createMixture: the two components over the joint scope of ``a`` and ``b``.

    The first takes the two children with the product's statistics, which include this batch,
    and its count from before the batch (authors' implementation). The second is factored, with
    the batch's means and the product's variances.
    """
    k = nodes[a]["n_scope"] + nodes[b]["n_scope"]
    scope = join_scopes(header, nodes, scopes, a, b)
    first = new_node(header, nodes, PRODUCT, scope, k, product)
    nodes[first]["count"] = nodes[product]["count"]
    nodes[first]["stats"] = new_block(header, stats, k * (k + 2))
    copy_statistics(nodes, scopes, stats, product, first)
    add_edge(header, nodes, edges, first, a, 1.0)
    add_edge(header, nodes, edges, first, b, 1.0)
    means, variances = np.empty(k), np.empty(k)
    block = nodes[first]["stats"]
    for v in range(k):
        means[v] = mean_of_rows(Z, scopes[scope + v], rows, lo, hi, stats[block + v])
        variances[v] = stats[block + 2 * k + v * k + v]
    second = add_factored_model(
        header, nodes, edges, scopes, stats, scope, k, means, variances, variance_floor, product
    )
    header[MIXTURES] += 1
    return first, second


@kernel
def mean_of_rows(Z: Array, v: int, rows: Array, lo: int, hi: int, default: float) -> float:
    """Mean of the observed values of a variable, or ``default`` without any."""
    n, total = 0, 0.0
    for t in range(lo, hi):
        x = Z[v, rows[t]]
        if x == x:
            n += 1
            total += x
    return total / n if n > 0 else default


@kernel
def split_rows(
    nodes: Array,
    edges: Array,
    Z: Array,
    values: Array,
    rows: Array,
    a: int,
    b: int,
    second: int,
    lo: int,
    hi: int,
    top: int,
) -> int:
    """Write the rows to ``rows[top:]``, those of the first component first; return their number.

    The first component is the product of ``a`` and ``b``, evaluated before the batch; ties go
    to it.
    """
    for child in (a, b):
        if nodes[child]["kind"] == LEAF:
            evaluate_leaf(child, child, nodes, Z, values.shape[1], values)
    share, rest = 0, top + hi - lo
    for t in range(lo, hi):
        r = rows[t]
        likelihood = 0.0
        edge = nodes[second]["first_edge"]
        while edge != NIL:
            leaf = edges[edge]["child"]
            x, mean = Z[nodes[leaf]["scope"], r], nodes[leaf]["mean"]
            likelihood += gaussian(x, mean, nodes[leaf]["precision"], nodes[leaf]["log_norm"])
            edge = edges[edge]["next"]
        if likelihood > values[a, r] + values[b, r] + CLEAR_WIN:
            rest -= 1
            rows[rest] = r
        else:
            rows[top + share] = r
            share += 1
    return share


@kernel
def install_mixture(
    header: Array,
    nodes: Array,
    edges: Array,
    product: int,
    parent: int,
    place: int,
    first: int,
    second: int,
    share: int,
) -> None:
    """Hang a mixture under its product, or its components under the sum above that.

    A sum that would become the child of a sum is dissolved into it (paper, section 3.2). The
    product has counted the batch; ``share`` of its rows are on their way to the first component.
    """
    before, count = nodes[first]["count"], nodes[product]["count"]
    if nodes[product]["n_children"] == 0 and parent != NIL and nodes[parent]["kind"] == SUM:
        # less than the count where the background won rows that the product learned
        weight = edges[place]["weight"] - 1.0
        edges[place]["child"] = first
        edges[place]["weight"] = weight * (before + share) / count + 1.0
        to_second = weight * (count - before - share) / count + 1.0
        add_edge(header, nodes, edges, parent, second, to_second)
        free_node(header, nodes, product)
        return
    mixture = new_node(header, nodes, SUM, nodes[first]["scope"], nodes[first]["n_scope"], product)
    nodes[mixture]["count"] = count
    add_edge(header, nodes, edges, mixture, first, before + share + 1.0)
    add_edge(header, nodes, edges, mixture, second, count - before - share + 1.0)
    add_edge(header, nodes, edges, product, mixture, 1.0)
    dissolve_single(header, nodes, edges, product, place)
