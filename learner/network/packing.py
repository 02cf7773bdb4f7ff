"""Packs a network into compact arrays, and unpacks it.

Nodes are listed children first, so that the number of each node's children is the whole
structure. Scopes of inner nodes, cached constants and free space are computed again on reading.
A network that is read is checked to be valid.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import Arrays
from faust_oslrau.learner.errors import InvalidNetworkError, StateError
from faust_oslrau.learner.state_schema import Entry, read

from .editing import add_edge, new_node, take_statistics
from .layout import (
    BACKGROUND,
    CHANGES,
    KIND_NAMES,
    LEAF,
    MULTIVARIATE_LEAF,
    NIL,
    PRODUCT,
    ROOT,
    SCOPES_TOP,
    SUM,
    deepest,
    moments_length,
    statistics_length,
)
from .leaves import refresh_leaf, refresh_multivariate
from .structure import Network
from .validity import LARGEST_NUMBER, require

SCHEMA = {
    "kind": Entry(("n",), min(KIND_NAMES), max(KIND_NAMES), "|i1"),
    "n_children": Entry(("n",), 0, dtype="<i4"),
    "weight": Entry(("n",)),
    "count": Entry(("n",)),
    "leaf_size": Entry(("leaves",), 1, dtype="<i4"),
    "leaf_scope": Entry(("variables",), 0, dtype="<i4"),
    "observed": Entry(("univariate",)),
    "mean": Entry(("univariate",)),
    "variance": Entry(("univariate",)),
    # a covariance that is not finite is never made regular
    "statistics": Entry(("s",), -LARGEST_NUMBER, LARGEST_NUMBER),
    "changes": Entry((len(CHANGES),), dtype="<i8"),
    "background": Entry((1,), dtype="<i8"),
}
"""The arrays of a packed network."""

NO_BACKGROUND = -1
"""Position of the background in a network without one."""


def pack_network(network: Network) -> Arrays:
    """Copy structure and parameters of a network into plain arrays."""
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
    return {name: parts[name].astype(entry.dtype) for name, entry in SCHEMA.items()}


def unpack_network(n_variables: int, arrays: Arrays, variance_floor: float) -> Network:
    """Build the network that ``pack_network`` took apart; StateError if it is no valid one."""
    try:
        network = _unpack(n_variables, arrays, variance_floor)
        network.check_validity()
    except InvalidNetworkError as error:
        raise StateError(str(error)) from error
    return network


def _unpack(n_variables: int, arrays: Arrays, variance_floor: float) -> Network:
    """Build a network; check only what building it requires."""
    require(arrays.keys() == SCHEMA.keys(), f"the arrays {', '.join(SCHEMA)}")
    read(arrays, SCHEMA)
    _check_nodes(arrays)
    scopes = scopes_of(n_variables, arrays)  # which bounds what is allocated below
    distinct = list(dict.fromkeys(scope for scope in scopes if len(scope) > 1))
    n = len(scopes)
    n_stats = sum(
        statistics_length(int(kind), len(scope))
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
    background = int(arrays["background"][0])
    if background == NO_BACKGROUND:
        return NIL
    root = network.nodes[network.root]
    require(root["kind"] == SUM and root["n_children"] > 1, "components beside a background")
    require(background == next(network.children(network.root))[0], "the background first")
    parts = [child for child, _ in network.children(background)] or [background]
    gaussian = network.nodes["kind"][parts] == MULTIVARIATE_LEAF
    product = len(parts) == 1 or network.nodes[background]["kind"] == PRODUCT
    require(product and gaussian.all(), "a Gaussian background")
    return background


def _check_nodes(arrays: Arrays) -> None:
    leaves = np.isin(arrays["kind"], [LEAF, MULTIVARIATE_LEAF])
    n, univariate = len(leaves), np.count_nonzero(arrays["kind"] == LEAF)
    require(n > 0, "a node")
    require((arrays["n_children"][leaves] == 0).all(), "leaves without children")
    require((arrays["n_children"][~leaves] >= 1).all(), "inner nodes with children")
    require(arrays["n_children"].sum() == n - 1, "one parent for each node but the root")
    require(len(arrays["leaf_size"]) == leaves.sum(), "a size for each leaf")
    require(len(arrays["leaf_scope"]) == arrays["leaf_size"].sum(), "a scope for each leaf")
    require(len(arrays["mean"]) == univariate, "a mean for each univariate leaf")


def scopes_of(d: int, arrays: Arrays) -> list[tuple[int, ...]]:
    """Return the scope of each node, in order.

    Checks the depth of the network and the length of the statistics, which grow with the square of
    a scope, before anything of that size is allocated.
    """
    variables, deep = arrays["leaf_scope"], deepest(d)
    require(((variables >= 0) & (variables < d)).all(), f"variables below {d}")
    leaf_scopes = iter(np.split(variables, np.cumsum(arrays["leaf_size"])[:-1]))
    scopes: list[tuple[int, ...]] = []
    waiting: list[tuple[tuple[int, ...], int]] = []
    left = len(arrays["statistics"])
    for kind, n_children in zip(arrays["kind"], arrays["n_children"], strict=True):
        require(len(waiting) >= n_children, "children before their parents")
        children = [scope for scope, _ in waiting[len(waiting) - n_children :]]
        level = 1 + max((lower for _, lower in waiting[len(waiting) - n_children :]), default=0)
        del waiting[len(waiting) - n_children :]
        require(level <= deep, f"at most {deep} nodes on a path")
        if kind in (LEAF, MULTIVARIATE_LEAF):
            scope = tuple(next(leaf_scopes).tolist())
        elif kind == SUM:
            scope = children[0]
        else:
            scope = tuple(sorted(v for child in children for v in child))
        require(len(scope) <= d, "disjoint scopes below a product")
        if statistics_length(int(kind), len(scope)) > 0:
            left -= moments_length(len(scope))
            require(left >= 0, "statistics for each product and leaf")
        scopes.append(scope)
        waiting.append((scope, level))
    require(left == 0, "no more statistics than the nodes have")
    require(len(waiting) == 1, "one root")
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
    pools, nodes = network.pools, network.nodes
    waiting: list[int] = []
    for i, (kind, n_children) in enumerate(
        zip(arrays["kind"], arrays["n_children"].tolist(), strict=True)
    ):
        new_node(pools, int(kind), offsets[scopes[i]], len(scopes[i]), NIL)
        for child in waiting[len(waiting) - n_children :]:
            add_edge(pools, i, child, float(arrays["weight"][child]))
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
        length = statistics_length(kind, k)
        if length == 0:
            continue
        stored = statistics[done : done + moments_length(k)]
        done += len(stored)
        node["stats"] = take_statistics(network.pools, length)
        network.stats[node["stats"] : node["stats"] + len(stored)] = stored
        if kind == MULTIVARIATE_LEAF:
            refresh_multivariate(i, network.nodes, network.stats, variance_floor)
