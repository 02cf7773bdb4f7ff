"""What makes a network a density: the rules for its structure and numbers."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from faust_oslrau.learner.errors import InvalidNetworkError

from .layout import FIRST, KIND_NAMES, LEAF, MULTIVARIATE_LEAF, NIL, NODE, PRODUCT, SUM, deepest

if TYPE_CHECKING:
    from .structure import Network

LARGEST_NUMBER = 1e120
"""No number of a sound network is larger: standardised values are clipped at 1e50."""

SMALLEST_WEIGHT = 1e-120
"""No weight of a sound network is near it: each is one more than a count."""

Children = dict[int, list[tuple[int, float]]]
"""The children of each node with their weights."""

Columns = dict[str, list[Any]]
"""The fields of the nodes as lists, whose entries are faster to read than those of arrays."""


def check_validity(network: Network) -> None:
    """Raise InvalidNetworkError for what `Network.check_validity` does not accept."""
    nodes = {name: network.nodes[name].tolist() for name in NODE.fields or ()}
    children = _walk(network, nodes)
    _check_scopes(network, nodes, children)
    _check_evaluation_order(network, nodes, children)
    _check_numbers(network, nodes, children)


def require(valid: bool | np.bool_, expected: str) -> None:
    """Raise InvalidNetworkError unless ``valid``."""
    if not valid:
        raise InvalidNetworkError(f"network: expected {expected}")


def _walk(network: Network, nodes: Columns) -> Children:
    """Return the children of all nodes of what is found to be a tree."""
    children, waiting, deep = Children(), [(network.root, 1)], deepest(network.n_variables)
    while waiting:
        i, depth = waiting.pop()
        require(i not in children, "one parent for each node but the root")
        require(depth <= deep, f"at most {deep} nodes on a path")
        n, kind = nodes["n_children"][i], nodes["kind"][i]
        children[i] = below = list(islice(network.children(i), n + 1))
        require(len(below) == n, "as many children as are counted")
        require(kind in KIND_NAMES, "known kinds of nodes")
        require((len(below) > 0) == (kind in (SUM, PRODUCT)), "children of sums and products only")
        waiting += [(child, depth + 1) for child, _ in below]
    require(len(children) == network.n_nodes, f"{network.n_nodes} nodes below the root")
    return children


def _check_scopes(network: Network, nodes: Columns, children: Children) -> None:
    d, pool = network.n_variables, network.scopes.tolist()
    starts, sizes = nodes["scope"], nodes["n_scope"]
    scopes = {i: pool[starts[i] : starts[i] + sizes[i]] for i in children}
    require(scopes[network.root] == list(range(d)), f"one root over {d} variables")
    for i, scope in scopes.items():
        kind, below = nodes["kind"][i], [scopes[child] for child, _ in children[i]]
        if kind == SUM:
            require(all(other == scope for other in below), "equal scopes below a sum")
        elif kind == PRODUCT:
            joint = sorted(v for other in below for v in other)
            require(joint == scope, "disjoint scopes below a product, which make up its own")
        else:
            require(scope == sorted(set(scope)), "each variable of a leaf once, in ascending order")
            require(kind == MULTIVARIATE_LEAF or len(scope) == 1, "one variable in a plain leaf")


def _check_evaluation_order(network: Network, nodes: Columns, children: Children) -> None:
    waiting = {i for i in children if nodes["kind"][i] != LEAF}
    require(network.root in waiting, "a root that is not a plain leaf")
    i = int(network.header[FIRST])
    while i != NIL:
        require(i in waiting, "each node but plain leaves listed once")
        require(not any(child in waiting for child, _ in children[i]), "children listed first")
        waiting.remove(i)
        i = nodes["next"][i]
    require(not waiting, "each node but plain leaves listed once")


def _check_numbers(network: Network, nodes: Columns, children: Children) -> None:
    statistics = [np.empty(0)]
    for i, below in children.items():
        require(0.0 <= nodes["count"][i] <= LARGEST_NUMBER, "no negative count")
        for _, weight in below:
            require(SMALLEST_WEIGHT <= weight <= LARGEST_NUMBER, "positive weights")
        if nodes["kind"][i] == LEAF:
            require(abs(nodes["mean"][i]) <= LARGEST_NUMBER, "finite means")
            require(0.0 <= nodes["observed"][i] <= LARGEST_NUMBER, "no negative count")
            require(0.0 <= nodes["variance"][i] <= LARGEST_NUMBER, "no negative variance")
            require(0.0 < nodes["precision"][i] < np.inf, "positive precisions")
        elif nodes["kind"][i] != SUM:
            statistics.append(network.statistics(i))
    require((np.abs(np.concatenate(statistics)) <= LARGEST_NUMBER).all(), "finite statistics")
