"""What makes a network a density: every rule that its structure and numbers must keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidNetworkError
from .layout import FIRST, KIND_NAMES, LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, SUM
from .traversal import deepest

if TYPE_CHECKING:
    from .structure import Network

LARGEST_NUMBER = 1e120
"""No number of a sound network is larger: standardised values are clipped at 1e50."""

SMALLEST_WEIGHT = 1e-120
"""No weight of a sound network is near it: each is one more than a count."""


Children = dict[int, list[tuple[int, float]]]
"""The children of each node with their weights."""


def check_validity(network: Network) -> None:
    """Raise InvalidNetworkError for what `Network.check_validity` does not accept."""
    children = _walk(network)
    _check_scopes(network, children)
    _check_evaluation_order(network, children)
    _check_numbers(network, children)


def require(valid: bool | np.bool_, expected: str) -> None:
    """Raise InvalidNetworkError unless ``valid``."""
    if not valid:
        raise InvalidNetworkError(f"network: expected {expected}")


def _walk(network: Network) -> Children:
    """Return the children of all nodes of what is found to be a tree."""
    children: Children = {}
    waiting, deep = [(network.root, 1)], deepest(network.n_variables)
    while waiting:
        i, depth = waiting.pop()
        require(i not in children, "one parent for each node but the root")
        require(depth <= deep, f"at most {deep} nodes on a path")
        children[i] = below = _children(network, i)
        kind = network.nodes[i]["kind"]
        require(kind in KIND_NAMES, "known kinds of nodes")
        require((len(below) > 0) == (kind in (SUM, PRODUCT)), "children of sums and products only")
        waiting += [(child, depth + 1) for child, _ in below]
    require(len(children) == network.n_nodes, f"{network.n_nodes} nodes below the root")
    return children


def _children(network: Network, i: int) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = []
    edge = network.nodes[i]["first_edge"]
    while edge != NIL:
        require(len(found) < network.nodes[i]["n_children"], "as many children as are counted")
        child, following, weight = network.edges[edge].item()
        found.append((child, weight))
        edge = following
    require(len(found) == network.nodes[i]["n_children"], "as many children as are counted")
    return found


def _check_scopes(network: Network, children: Children) -> None:
    d = network.n_variables
    scopes = {i: network.scope(i).tolist() for i in children}
    require(scopes[network.root] == list(range(d)), f"one root over {d} variables")
    for i, scope in scopes.items():
        kind, below = network.nodes[i]["kind"], [scopes[child] for child, _ in children[i]]
        if kind == SUM:
            require(all(other == scope for other in below), "equal scopes below a sum")
        elif kind == PRODUCT:
            joint = sorted(v for other in below for v in other)
            require(joint == scope, "disjoint scopes below a product, which make up its own")
        else:
            require(scope == sorted(set(scope)), "each variable of a leaf once, in ascending order")
            require(kind == MULTIVARIATE_LEAF or len(scope) == 1, "one variable in a plain leaf")


def _check_evaluation_order(network: Network, children: Children) -> None:
    waiting = {i for i in children if network.nodes[i]["kind"] != LEAF}
    require(network.root in waiting, "a root that is not a plain leaf")
    i = int(network.header[FIRST])
    while i != NIL:
        require(i in waiting, "each node but plain leaves listed once")
        require(not any(child in waiting for child, _ in children[i]), "children listed first")
        waiting.remove(i)
        i = int(network.nodes[i]["next"])
    require(not waiting, "each node but plain leaves listed once")


def _check_numbers(network: Network, children: Children) -> None:
    for i, below in children.items():
        node = network.nodes[i]
        require(0.0 <= node["count"] <= LARGEST_NUMBER, "no negative count")
        for _, weight in below:
            require(SMALLEST_WEIGHT <= weight <= LARGEST_NUMBER, "positive weights")
        if node["kind"] == LEAF:
            require(abs(node["mean"]) <= LARGEST_NUMBER, "finite means")
            require(0.0 <= node["observed"] <= LARGEST_NUMBER, "no negative count")
            require(0.0 <= node["variance"] <= LARGEST_NUMBER, "no negative variance")
            require(0.0 < node["precision"] < np.inf, "positive precisions")
        elif node["kind"] != SUM:
            statistics = network.statistics(i)
            require((np.abs(statistics) <= LARGEST_NUMBER).all(), "finite statistics")
