"""Draws the structure of a network as a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from faust_oslrau.learner.network.layout import KIND_NAMES, LEAF, MULTIVARIATE_LEAF, SUM
from faust_oslrau.learner.network.structure import Network

if TYPE_CHECKING:
    import networkx

SYMBOLS = {"sum": "+", "product": "×"}  # noqa: RUF001  the sign of a product
Units = Callable[[int, float], float]


def to_dot(network: Network, names: Sequence[str], units: Units) -> str:
    """Write the network in Graphviz's language, leaves with their means in ``units``."""
    lines = ["digraph spn {", "  node [fontname=sans fontsize=10];", "  edge [fontsize=8];"]
    for i in reversed(network.live.tolist()):
        shape = "box" if _is_leaf(network, i) else "circle"
        lines.append(f"  n{i} [shape={shape} label={quoted(_label(network, i, names, units))}];")
    for i in reversed(network.live.tolist()):
        shares = edge_shares(network, i)
        for child, share in shares:
            label = "" if share is None else f' [label="{share:.2g}"]'
            lines.append(f"  n{i} -> n{child}{label};")
    return "\n".join([*lines, "}"]) + "\n"


def to_networkx(network: Network, names: Sequence[str]) -> networkx.DiGraph:
    """Build a directed graph with the attributes kind, scope, count (nodes) and weight (edges).

    Raises
    ------
    ModuleNotFoundError
        networkx is not installed.
    """
    import networkx

    graph = networkx.DiGraph()
    for i in reversed(network.live.tolist()):
        graph.add_node(
            i,
            kind=KIND_NAMES[int(network.nodes[i]["kind"])],
            scope=[names[v] for v in network.scope(i)],
            count=float(network.nodes[i]["count"]),
        )
    for i in network.live.tolist():
        for child, share in edge_shares(network, i):
            graph.add_edge(i, child, weight=1.0 if share is None else share)
    return graph


def edge_shares(network: Network, i: int) -> list[tuple[int, float | None]]:
    """Children of a node with their normalised weights, None below a product."""
    children = list(network.children(i))
    if network.nodes[i]["kind"] != SUM:
        return [(child, None) for child, _ in children]
    total = sum(weight for _, weight in children)
    return [(child, weight / total) for child, weight in children]


def _is_leaf(network: Network, i: int) -> bool:
    return network.nodes[i]["kind"] in (LEAF, MULTIVARIATE_LEAF)


def _label(network: Network, i: int, names: Sequence[str], units: Units) -> str:
    node = network.nodes[i]
    if not _is_leaf(network, i):
        return SYMBOLS[KIND_NAMES[int(node["kind"])]]
    scope = network.scope(i).tolist()
    means = [node["mean"]] if node["kind"] == LEAF else network.gaussian(i)[0]
    return "\n".join(
        f"{names[v]} = {units(v, float(mean)):.3g}" for v, mean in zip(scope, means, strict=True)
    )


def quoted(text: str) -> str:
    """Write a text as a string of Graphviz's language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
