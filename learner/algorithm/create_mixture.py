"""Algorithm 3, createMixture: two children of a product become a mixture of two products."""

from __future__ import annotations

import numpy as np

from ..network.editing import add_edge, copy_statistics, free_node, join_scopes, new_block, new_node
from ..network.layout import LEAF, MERGES_DENIED, MIXTURES, N_NODES, NIL, PRODUCT, SUM
from ..network.leaves import evaluate_leaf, gaussian
from ..vector.compiler import Array, kernel
from .create_factored_model import add_factored_model
from .rule import CLEAR_WIN
from .simplification import dissolve_single

MIXTURE_OVERHEAD = 3
"""Nodes of a new mixture beside its leaves: a sum and two products."""


@kernel
def affordable(header: Array, nodes: Array, a: int, b: int, max_nodes: int) -> bool:
    """Whether the node budget allows a mixture over the scopes of ``a`` and ``b``."""
    k = nodes[a]["n_scope"] + nodes[b]["n_scope"]
    if header[N_NODES] + k + MIXTURE_OVERHEAD > max_nodes:
        header[MERGES_DENIED] += 1
        return False
    return True


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
