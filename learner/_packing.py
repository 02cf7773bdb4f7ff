"""A network as compact arrays and back.

Nodes are listed children first, so that the number of each node's children is the whole
structure; scopes of inner nodes, caches and free space are made anew on reading. What is read
is checked: it is a complete and decomposable tree whose numbers a learner can go on from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._layout import (
    BACKGROUND,
    KIND_NAMES,
    LEAF,
    MERGES_DENIED,
    MIXTURES,
    MULTIVARIATE_LEAF,
    MULTIVARIATE_LEAVES,
    NIL,
    ROOT,
    SCOPES_TOP,
    SUM,
    block_length,
    product_block,
)
from ._moments import refresh_leaf, refresh_multivariate
from ._structure import add_edge, deepest, new_block, new_node
from .errors import StateError
from .network import Network

Arrays = dict[str, NDArray[Any]]

TYPES = {
    "kind": "|i1",
    "n_children": "<i4",
    "weight": "<f8",
    "count": "<f8",
    "leaf_size": "<i4",
    "leaf_scope": "<i4",
    "observed": "<f8",
    "mean": "<f8",
    "variance": "<f8",
    "statistics": "<f8",
    "changes": "<i8",
    "background": "<i8",
}
"""The arrays of a packed network."""

CHANGES = [MIXTURES, MULTIVARIATE_LEAVES, MERGES_DENIED]
"""Slots of the header that outlive packing."""

NO_BACKGROUND = -1
"""In place of the background's position."""

LARGEST = 1e120
"""No number of a healthy network is larger: standardised values are clipped at 1e50."""


SMALLEST_WEIGHT = 1e-120
"""No weight of a healthy network is near it: each is one more than a count."""


def pack_network(network: Network) -> Arrays:
    """Copy what the network is made of into plain arrays."""
    live = network.live
    nodes = network.nodes[live]
    position = {int(node): k for k, node in enumerate(live)}
    weight = np.ones(len(live))
    for i in live[nodes["kind"] == SUM]:
        for child, w in network.children(i):
            weight[position[child]] = w
    leaves = live[np.isin(nodes["kind"], [LEAF, MULTIVARIATE_LEAF])]
    univariate = nodes[nodes["kind"] == LEAF]
    statistics = [network.statistics(i) for i in live[nodes["stats"] != NIL]]
    parts = {
        "kind": nodes["kind"],
        "n_children": nodes["n_children"],
        "weight": weight,
        "count": nodes["count"],
        "leaf_size": network.nodes["n_scope"][leaves],
        "leaf_scope": np.concatenate([network.scope(i) for i in leaves]),
        "observed": univariate["observed"],
        "mean": univariate["mean"],
        "variance": univariate["variance"],
        "statistics": np.concatenate([np.empty(0), *statistics]),
        "changes": network.header[CHANGES],
        "background": np.array([position.get(int(network.header[BACKGROUND]), NO_BACKGROUND)]),
    }
    return {name: parts[name].astype(dtype) for name, dtype in TYPES.items()}


def unpack_network(n_variables: int, arrays: Arrays, variance_floor: float) -> Network:
    """Build the network that ``pack_network`` took apart.

    Raises
    ------
    StateError
        The arrays are not those of a complete and decomposable network of sane numbers.
    """
    _check_shapes(arrays)
    _check_numbers(arrays)
    scopes = _scopes(n_variables, arrays)  # which bounds what is allocated below
    distinct = list(dict.fromkeys(scope for scope in scopes if len(scope) > 1))
    n = len(scopes)
    n_stats = sum(
        block_length(int(kind), len(scope))
        for kind, scope in zip(arrays["kind"], scopes, strict=True)
    )
    network = Network(n_variables, n, n, sum(map(len, distinct)), n_stats)
    _add_nodes(network, arrays, scopes, _write_scopes(network, distinct))
    _fill_statistics(network, arrays, variance_floor)
    network.header[CHANGES] = arrays["changes"]
    network.header[ROOT] = n - 1
    network.header[BACKGROUND] = _background(network, arrays)
    return network


def _background(network: Network, arrays: Arrays) -> int:
    _require(len(arrays["background"]) == 1, "one background or none")
    background = int(arrays["background"][0])
    if background == NO_BACKGROUND:
        return NIL
    root = network.nodes[network.root]
    _require(root["kind"] == SUM and root["n_children"] > 1, "components beside a background")
    _require(background == next(network.children(network.root))[0], "the background first")
    _require(network.nodes[background]["kind"] == MULTIVARIATE_LEAF, "a Gaussian background")
    return background


def _require(valid: bool | np.bool_, expected: str) -> None:
    if not valid:
        raise StateError(f"network: expected {expected}")


def _check_shapes(arrays: Arrays) -> None:
    _require(arrays.keys() == TYPES.keys(), f"the arrays {', '.join(TYPES)}")
    for name, dtype in TYPES.items():
        _require(arrays[name].ndim == 1 and arrays[name].dtype == dtype, f"{name} as {dtype}")
    n = len(arrays["kind"])
    leaves = np.isin(arrays["kind"], [LEAF, MULTIVARIATE_LEAF])
    _require(n > 0 and np.isin(arrays["kind"], list(KIND_NAMES)).all(), "known kinds of nodes")
    _require(all(len(arrays[name]) == n for name in ("n_children", "weight", "count")), "n nodes")
    _require((arrays["n_children"][leaves] == 0).all(), "leaves without children")
    _require(arrays["kind"][-1] != LEAF, "a root that is no plain leaf")
    _require((arrays["n_children"][~leaves] >= 1).all(), "inner nodes with children")
    _require(arrays["n_children"].sum() == n - 1, "one parent for each node but the root")
    _require(len(arrays["leaf_size"]) == leaves.sum(), "a size for each leaf")
    _require((arrays["leaf_size"] >= 1).all(), "leaves over at least one variable")
    _require(len(arrays["leaf_scope"]) == arrays["leaf_size"].sum(), "a scope for each leaf")
    univariate = np.count_nonzero(arrays["kind"] == LEAF)
    _require(
        all(len(arrays[name]) == univariate for name in ("observed", "mean", "variance")),
        "a mean, a variance and a count for each univariate leaf",
    )
    _require(len(arrays["changes"]) == len(CHANGES), f"{len(CHANGES)} counts of changes")


def _check_numbers(arrays: Arrays) -> None:
    for name in ("weight", "count", "observed", "mean", "variance", "statistics"):
        _require((np.abs(arrays[name]) <= LARGEST).all(), f"finite numbers in {name}")
    _require((arrays["weight"] >= SMALLEST_WEIGHT).all(), "positive weights")
    for name in ("count", "observed", "variance"):
        _require((arrays[name] >= 0).all(), f"no negative {name}")


def _scopes(d: int, arrays: Arrays) -> list[tuple[int, ...]]:
    """Scope of each node, in order.

    Refuses what is not complete and decomposable, what is deeper than variables allow, and nodes
    whose statistics are not all there: these grow with the square of a scope.
    """
    ends = np.cumsum(arrays["leaf_size"])
    leaf_scopes = iter(np.split(arrays["leaf_scope"], ends[:-1]))
    scopes: list[tuple[int, ...]] = []
    open_scopes: list[tuple[int, ...]] = []
    open_levels: list[int] = []
    statistics = len(arrays["statistics"])
    for kind, n_children in zip(arrays["kind"], arrays["n_children"], strict=True):
        _require(len(open_scopes) >= n_children, "children before their parents")
        children = open_scopes[len(open_scopes) - n_children :]
        del open_scopes[len(open_scopes) - n_children :]
        level = 1 + max(open_levels[len(open_levels) - n_children :], default=0)
        del open_levels[len(open_levels) - n_children :]
        _require(level <= deepest(d), "no more levels than variables allow")
        if kind in (LEAF, MULTIVARIATE_LEAF):
            scope = tuple(next(leaf_scopes).tolist())
            _require(kind == MULTIVARIATE_LEAF or len(scope) == 1, "one variable a plain leaf")
        elif kind == SUM:
            scope = children[0]
            _require(all(child == scope for child in children), "equal scopes below a sum")
        else:
            scope = tuple(sorted(v for child in children for v in child))
        _require(scope == tuple(sorted(set(scope))), "disjoint scopes in ascending order")
        _require(scope[0] >= 0 and scope[-1] < d, f"variables below {d}")
        if block_length(int(kind), len(scope)) > 0:
            statistics -= product_block(len(scope))
            _require(statistics >= 0, "statistics for each product and leaf")
        scopes.append(scope)
        open_scopes.append(scope)
        open_levels.append(level)
    _require(statistics == 0, "no more statistics than the nodes have")
    _require(open_scopes == [tuple(range(d))], f"one root over {d} variables")
    return scopes


def _write_scopes(network: Network, distinct: list[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    offsets: dict[tuple[int, ...], int] = {(v,): v for v in range(network.n_variables)}
    for scope in distinct:
        offsets[scope] = start = int(network.header[SCOPES_TOP])
        network.scopes[start : start + len(scope)] = scope
        network.header[SCOPES_TOP] += len(scope)
    return offsets


def _add_nodes(
    network: Network,
    arrays: Arrays,
    scopes: list[tuple[int, ...]],
    offsets: dict[tuple[int, ...], int],
) -> None:
    """Add nodes and edges; a node's index is its place in the order."""
    header, nodes, edges = network.header, network.nodes, network.edges
    waiting: list[int] = []
    for i, (kind, n_children) in enumerate(
        zip(arrays["kind"], arrays["n_children"].tolist(), strict=True)
    ):
        new_node(header, nodes, int(kind), offsets[scopes[i]], len(scopes[i]), NIL)
        for child in waiting[len(waiting) - n_children :]:
            add_edge(header, nodes, edges, i, child, float(arrays["weight"][child]))
        del waiting[len(waiting) - n_children :]
        waiting.append(i)
    nodes["count"] = arrays["count"]
    univariate = arrays["kind"] == LEAF
    for name in ("observed", "mean", "variance"):
        nodes[name][univariate] = arrays[name]


def _fill_statistics(network: Network, arrays: Arrays, variance_floor: float) -> None:
    statistics, done = arrays["statistics"], 0
    for i, node in enumerate(network.nodes):
        kind, k = int(node["kind"]), int(node["n_scope"])
        if kind == LEAF:
            refresh_leaf(i, network.nodes, variance_floor)
        length = block_length(kind, k)
        if length == 0:
            continue
        stored = statistics[done : done + product_block(k)]
        done += len(stored)
        node["stats"] = new_block(network.header, network.stats, length)
        network.stats[node["stats"] : node["stats"] + len(stored)] = stored
        if kind == MULTIVARIATE_LEAF:
            refresh_multivariate(i, network.nodes, network.stats, variance_floor)
