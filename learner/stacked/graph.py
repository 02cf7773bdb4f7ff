"""The nodes of a stacked network and their number, to look at: leaves have several parents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.queries.drawing import NO_PARENT, Drawn, Node

from .background import WIDTHS
from .members import Member
from .network import StackedNetwork


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
                [float(leaves.mean[j] * scale[v] + location[v])],
                [float(np.sqrt(leaves.variance[j]) * scale[v])],
            )
        )  # fmt: skip


def _add_gaussians(
    nodes: list[Node], network: StackedNetwork, location: FloatArray, scale: FloatArray
) -> None:
    scope, mixture = list(range(network.n_variables)), network.mixture

    def add(
        mean: FloatArray, covariance: FloatArray, count: float, parent: int, share: float
    ) -> None:
        node = Node("multivariate_leaf", scope, count, parent, share)
        nodes.append(node.with_gaussian(mean, covariance, location, scale))

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


class Shape(Drawn):
    """Answers of a model that has networks under one root."""

    def _members(self) -> list[Member]:
        raise NotImplementedError

    def _nodes(self) -> list[Node]:
        found = self._members()
        lists = [list_nodes(member.network, *member.scaling.units) for member in found]
        return under_one_root(lists, [member.share for member in found])

    @property
    def n_nodes_(self) -> int:
        """Number of sum, product and leaf nodes, each counted once."""
        return sum(self.node_counts_.values())

    @property
    def node_counts_(self) -> dict[str, int]:
        """Number of nodes by kind: sum, product, leaf, multivariate_leaf."""
        counts = [member.network.kind_counts for member in self._members()]
        total = {kind: sum(each[kind] for each in counts) for kind in counts[0]}
        return total | {"sum": total["sum"] - (len(counts) - 1)}  # they have one root

    @property
    def n_edges_(self) -> int:
        """Number of edges."""
        return sum(member.network.n_edges for member in self._members())

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters: weights, means, variances and covariances."""
        found = self._members()
        return sum(member.network.n_parameters for member in found) + len(found) - 1

    @property
    def depth_(self) -> int:
        """Nodes on the longest path from the root to a leaf."""
        return 5  # root, sum of products, product, sum of leaves, leaf

    @property
    def structure_changes_(self) -> dict[str, int]:
        """Structure changes: none, as the number of fields says what the structure is."""
        return {"mixture": 0, "multivariate_leaf": 0, "denied": 0}
