"""The structure of a network as columns of plain numbers, for programs that draw it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.network.layout import KIND_NAMES, LEAF, MULTIVARIATE_LEAF, NIL, SUM
from faust_oslrau.learner.network.structure import Network
from faust_oslrau.learner.vector.compiler import Array

FloatArray = NDArray[np.float64]

NO_PARENT = -1
"""Parent position of the root."""


def outline(
    network: Network, names: Sequence[str], location: FloatArray, scale: FloatArray
) -> dict[str, Any]:
    """Return the nodes as columns of the same length, parents before their children.

    ``kind``, ``parent`` (a position in the columns, -1 above the root), ``weight`` (share of a
    sum's child, else None), ``count`` (records that reached the node), ``scope`` (positions in
    ``fields``) and, for leaves, ``mean`` and ``deviation`` by variable of the scope, in units
    ``z * scale + location``. ``correlation`` holds the upper triangle of a multivariate leaf's
    matrix without the diagonal, row by row, in percent.
    """
    live = network.live[::-1]
    nodes = network.nodes[live]
    parent, weight = _edges(network, live)
    leaves = _leaves(network, live, location, scale)
    return {
        "fields": list(names),
        "kind": [KIND_NAMES[kind] for kind in nodes["kind"].tolist()],
        "parent": parent,
        "weight": weight,
        "count": nodes["count"].tolist(),
        "scope": _scopes(network, nodes),
        **{name: [getattr(leaf, name) for leaf in leaves] for name in _Leaf._fields},
    }


class _Leaf(NamedTuple):
    mean: list[float] | None = None
    deviation: list[float] | None = None
    correlation: list[int] | None = None


def _edges(network: Network, live: NDArray[np.int64]) -> tuple[list[int], list[float | None]]:
    """Return the position of each node's parent, and its normalised weight below a sum."""
    places = dict(zip(live.tolist(), range(len(live)), strict=True))
    is_sum = (network.nodes["kind"][live] == SUM).tolist()
    parent = [NO_PARENT] * len(live)
    weight: list[float | None] = [None] * len(live)
    for position, children in enumerate(_children(network, live)):
        total = sum(share for _, share in children)
        for child, share in children:
            parent[places[child]] = position
            weight[places[child]] = share / total if is_sum[position] else None
    return parent, weight


def _children(network: Network, live: NDArray[np.int64]) -> Iterator[list[tuple[int, float]]]:
    """Yield each node's children and weights. Entries of lists are faster to read than arrays'."""
    edges = network.edges
    child, following, weight = (edges[name].tolist() for name in ("child", "next", "weight"))
    for edge in network.nodes["first_edge"][live].tolist():
        found = []
        while edge != NIL:
            found.append((child[edge], weight[edge]))
            edge = following[edge]
        yield found


def _scopes(network: Network, nodes: Array) -> list[list[int]]:
    pool = network.scopes.tolist()
    starts, sizes = nodes["scope"].tolist(), nodes["n_scope"].tolist()
    return [pool[start : start + size] for start, size in zip(starts, sizes, strict=True)]


def _leaves(
    network: Network, live: NDArray[np.int64], location: FloatArray, scale: FloatArray
) -> list[_Leaf]:
    """Return the parameters of each leaf, and empty ones for other nodes."""
    nodes = network.nodes[live]
    variables = network.scopes[nodes["scope"]]  # of univariate leaves
    means = (nodes["mean"] * scale[variables] + location[variables]).tolist()
    deviations = (np.sqrt(np.abs(nodes["variance"])) * scale[variables]).tolist()
    leaves = [_Leaf()] * len(live)
    for position, kind in enumerate(nodes["kind"].tolist()):
        if kind == LEAF:
            leaves[position] = _Leaf([means[position]], [deviations[position]])
        elif kind == MULTIVARIATE_LEAF:
            leaves[position] = _multivariate(network, int(live[position]), location, scale)
    return leaves


def _multivariate(network: Network, leaf: int, location: FloatArray, scale: FloatArray) -> _Leaf:
    scope = network.scope(leaf)
    mean, covariance = network.gaussian(leaf)
    deviation = np.sqrt(np.diagonal(covariance))
    spread = np.where(deviation > 0, deviation, np.inf)  # a constant correlates with nothing
    correlation = (covariance / np.outer(spread, spread))[np.triu_indices(len(scope), 1)]
    return _Leaf(
        (mean * scale[scope] + location[scope]).tolist(),
        (deviation * scale[scope]).tolist(),
        np.rint(100 * correlation).astype(int).tolist(),
    )
