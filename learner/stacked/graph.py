"""The structure of a stacked network, to look at: every node once, leaves with several parents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.queries.drawing import SYMBOLS, quoted

from .background import WIDTHS
from .network import StackedNetwork

if TYPE_CHECKING:
    import networkx

FloatArray = NDArray[np.float64]

NO_PARENT = -1
"""In place of the position of the root's parent."""

LEAST_SHARE = 0.005
"""Least weight of a shared leaf that the outline names below a sum. The others together would make
the outline ten times as long."""

WIDEST_MATRIX = 256
"""Most variables of a matrix of correlations in the outline."""


class Node(NamedTuple):
    """A node: its first parent, and for leaves mean and covariance in the fields' units.

    Attributes
    ----------
    kind, scope
        sum, product, leaf or multivariate_leaf; numbers of its variables.
    records
        Records that it has learned.
    parent, share
        Position of its first parent, and its weight there if that is a sum.
    mean, covariance
        Of a leaf.
    leaves, shares
        Of a sum whose children are shared leaves: their positions and weights.
    """

    kind: str
    scope: list[int]
    records: float
    parent: int
    share: float | None = None
    mean: FloatArray | None = None
    covariance: FloatArray | None = None
    leaves: range = range(0)
    shares: FloatArray | None = None


def list_nodes(network: StackedNetwork, location: FloatArray, scale: FloatArray) -> list[Node]:
    """List all nodes, parents before their children; leaves are in units z * scale + location."""
    everything, products = list(range(network.n_variables)), network.products
    n = float(products.count.sum())
    nodes = [Node("sum", everything, n, NO_PARENT)]
    weight = [float(w) for w in network.weight]
    marginal = _add(nodes, Node("product", everything, n, 0, weight[0]))
    mixed = _add(nodes, Node("sum", everything, n, 0, weight[1]))
    parents = [marginal]
    for share, count in zip(products.weight, products.count, strict=True):
        node = Node("product", everything, float(count), mixed, float(share))
        parents.append(_add(nodes, node))
    _add_sums_and_leaves(nodes, network, parents, location, scale)
    _add_gaussians(nodes, network, location, scale)
    return nodes


def under_one_root(lists: Sequence[list[Node]], shares: Sequence[float]) -> list[Node]:
    """Put the children of several roots under one, with their weights times the roots' shares."""
    if len(lists) == 1:
        return lists[0]
    result = [lists[0][0]._replace(records=sum(nodes[0].records for nodes in lists))]
    for nodes, share in zip(lists, shares, strict=True):
        offset = len(result) - 1
        for node in nodes[1:]:
            leaves = range(node.leaves.start + offset, node.leaves.stop + offset)
            weight, parent = node.share, node.parent + offset
            if node.parent == 0:
                weight, parent = share * (node.share or 0.0), 0
            result.append(node._replace(parent=parent, share=weight, leaves=leaves))
    return result


def _add(nodes: list[Node], node: Node) -> int:
    nodes.append(node)
    return len(nodes) - 1


def _add_sums_and_leaves(
    nodes: list[Node],
    network: StackedNetwork,
    parents: list[int],
    location: FloatArray,
    scale: FloatArray,
) -> None:
    products, leaves, d = network.products, network.products.leaves, network.n_variables
    first_sum = len(nodes)
    first_leaf = first_sum + len(parents) * d
    for k, parent in enumerate(parents):
        for v in range(d):
            own = slice(*leaves.first[v : v + 2])
            count = products.leaf_count[own] if k == 0 else products.leaf_count[own, k - 1]
            below = range(first_leaf + own.start, first_leaf + own.stop)
            shares = products.W[own, k]
            nodes.append(Node("sum", [v], float(count.sum()), parent, leaves=below, shares=shares))
    for j, v in enumerate(leaves.variable.tolist()):
        nodes.append(
            Node(
                "leaf", [v], float(products.moments[0, j]), first_sum + v,
                float(products.W[j, 0]),
                leaves.mean[j : j + 1] * scale[v] + location[v],
                leaves.variance[j : j + 1, None] * scale[v] ** 2,
            )
        )  # fmt: skip


def _add_gaussians(
    nodes: list[Node], network: StackedNetwork, location: FloatArray, scale: FloatArray
) -> None:
    scope, mixture = list(range(network.n_variables)), network.mixture

    def add(
        mean: FloatArray, covariance: FloatArray, count: float, parent: int, share: float
    ) -> None:
        mean, covariance = mean * scale + location, covariance * np.outer(scale, scale)
        nodes.append(Node("multivariate_leaf", scope, count, parent, share, mean, covariance))

    if mixture is not None:
        n, gaussians = float(mixture.count.sum()), mixture.gaussians
        parent = _add(nodes, Node("sum", scope, n, 0, float(network.weight[2])))
        for k, count in enumerate(mixture.count.tolist()):
            covariance = gaussians.part(slice(k, k + 1)).covariance()[0]
            add(gaussians.mean[k], covariance, count, parent, float(mixture.weight[k]))
    mean, covariance = network.background.mean, network.background.covariance
    n = network.background.known.count
    for width, share in zip(WIDTHS.tolist(), network.background_weights.tolist(), strict=True):
        add(mean, covariance * width**2, n, 0, share)


def edges(nodes: Sequence[Node]) -> list[tuple[int, int, float | None]]:
    """List parent, child and the child's weight below a sum, of each edge."""
    found: list[tuple[int, int, float | None]] = []
    shared = {j for node in nodes for j in node.leaves}
    for i, node in enumerate(nodes):
        if node.parent != NO_PARENT and i not in shared:
            found.append((node.parent, i, node.share))
        if node.shares is not None:
            found += [(i, j, float(w)) for j, w in zip(node.leaves, node.shares, strict=True)]
    return found


def to_dot(nodes: Sequence[Node], names: Sequence[str]) -> str:
    """Write the nodes in Graphviz's language, leaves with their means."""
    lines = ["digraph spn {", "  node [fontname=sans fontsize=10];", "  edge [fontsize=8];"]
    for i, node in enumerate(nodes):
        shape = "circle" if node.mean is None else "box"
        lines.append(f"  n{i} [shape={shape} label={quoted(_label(node, names))}];")
    for parent, child, share in edges(nodes):
        label = "" if share is None else f' [label="{share:.2g}"]'
        lines.append(f"  n{parent} -> n{child}{label};")
    return "\n".join([*lines, "}"]) + "\n"


def _label(node: Node, names: Sequence[str]) -> str:
    if node.mean is None:
        return SYMBOLS[node.kind]
    means = zip(node.scope, node.mean.tolist(), strict=True)
    return "\n".join(f"{names[v]} = {mean:.3g}" for v, mean in means)


def to_networkx(nodes: Sequence[Node], names: Sequence[str]) -> networkx.DiGraph:
    """Build a directed graph with the attributes kind, scope, count (nodes) and weight (edges).

    Raises
    ------
    ModuleNotFoundError
        networkx is not installed.
    """
    import networkx

    graph = networkx.DiGraph()
    for i, node in enumerate(nodes):
        scope = [names[v] for v in node.scope]
        graph.add_node(i, kind=node.kind, scope=scope, count=node.records)
    for parent, child, share in edges(nodes):
        graph.add_edge(parent, child, weight=1.0 if share is None else share)
    return graph


def outline(nodes: Sequence[Node], names: Sequence[str]) -> dict[str, Any]:
    """Return the nodes as columns of the same length, as the outline of a tree has them.

    The ``parent`` of a shared leaf is the sum of its variable's marginal. The other sums over
    shared leaves name the positions of their heaviest children in ``leaves`` and the weights in
    ``shares``, from `LEAST_SHARE` on; both are None for all other nodes. ``correlation`` is None
    for leaves of more than 256 fields, too, as it would grow with their square.
    """
    below = [_heavy_leaves(i, nodes) for i in range(len(nodes))]
    deviations = [None if n.covariance is None else np.sqrt(np.diag(n.covariance)) for n in nodes]
    return {
        "fields": list(names),
        "kind": [node.kind for node in nodes],
        "parent": [node.parent for node in nodes],
        "weight": [node.share for node in nodes],
        "count": [node.records for node in nodes],
        "scope": [node.scope for node in nodes],
        "mean": [None if node.mean is None else node.mean.tolist() for node in nodes],
        "deviation": [None if each is None else each.tolist() for each in deviations],
        "correlation": [
            _correlation(node, deviation) for node, deviation in zip(nodes, deviations, strict=True)
        ],
        "leaves": [leaves for leaves, _ in below],
        "shares": [shares for _, shares in below],
    }


def _heavy_leaves(
    sum_node: int, nodes: Sequence[Node]
) -> tuple[list[int], list[float]] | tuple[None, None]:
    """Positions and weights of the heaviest shared leaves of a sum that is not their parent."""
    node = nodes[sum_node]
    if node.shares is None or nodes[node.leaves.start].parent == sum_node:
        return None, None
    heavy = np.flatnonzero(node.shares >= LEAST_SHARE)
    return (node.leaves.start + heavy).tolist(), node.shares[heavy].round(4).tolist()


def _correlation(node: Node, deviation: FloatArray | None) -> list[int] | None:
    """Upper triangle of a multivariate leaf's matrix without the diagonal, in percent.

    0 where variances are too small or too large for a number in the fields' units.
    """
    if node.kind != "multivariate_leaf" or node.covariance is None or deviation is None:
        return None
    if len(deviation) > WIDEST_MATRIX:
        return None
    product = np.outer(deviation, deviation)
    known = (product > 0.0) & np.isfinite(product)
    correlation = np.divide(node.covariance, product, out=np.zeros_like(product), where=known)
    upper = correlation[np.triu_indices(len(deviation), 1)]
    return [int(percent) for percent in np.rint(100 * upper)]
