"""The nodes of a network that is a tree, to look at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.network.layout import KIND_NAMES, LEAF, MULTIVARIATE_LEAF, NIL, SUM
from faust_oslrau.learner.network.structure import Network

from .drawing import NO_PARENT, Node


def list_nodes(network: Network, location: FloatArray, scale: FloatArray) -> list[Node]:
    """List all nodes, parents before their children; leaves are in units z * scale + location."""
    live = network.live[::-1]
    nodes, edges = network.nodes[live], _edges(network, live)
    variables = network.scopes[nodes["scope"]]  # of univariate leaves
    means = (nodes["mean"] * scale[variables] + location[variables]).tolist()
    deviations = (np.sqrt(np.abs(nodes["variance"])) * scale[variables]).tolist()
    kinds, counts = nodes["kind"].tolist(), nodes["count"].tolist()
    scopes, pool = nodes[["scope", "n_scope"]].tolist(), network.scopes.tolist()
    found = []
    for place, (kind, count, (start, size)) in enumerate(zip(kinds, counts, scopes, strict=True)):
        node = Node(KIND_NAMES[kind], pool[start : start + size], count, *edges[place])
        if kind == LEAF:
            node = node._replace(mean=[means[place]], deviation=[deviations[place]])
        elif kind == MULTIVARIATE_LEAF:
            node = node.with_gaussian(*network.gaussian(int(live[place])), location, scale)
        found.append(node)
    return found


def _edges(network: Network, live: IntArray) -> list[tuple[int, float | None]]:
    """Return the position of each node's parent, and its normalised weight below a sum."""
    places = dict(zip(live.tolist(), range(len(live)), strict=True))
    is_sum = (network.nodes["kind"][live] == SUM).tolist()
    found: list[tuple[int, float | None]] = [(NO_PARENT, None)] * len(live)
    for place, children in enumerate(_children(network, live)):
        total = sum(weight for _, weight in children)
        for child, weight in children:
            found[places[child]] = place, weight / total if is_sum[place] else None
    return found


def _children(network: Network, live: IntArray) -> Iterator[list[tuple[int, float]]]:
    """Yield each node's children and weights. Entries of lists are faster to read than arrays'."""
    edges = network.edges
    child, following, weight = (edges[name].tolist() for name in ("child", "next", "weight"))
    for edge in network.nodes["first_edge"][live].tolist():
        found = []
        while edge != NIL:
            found.append((child[edge], weight[edge]))
            edge = following[edge]
        yield found
