"""The structure of a network, to look at: every node once, as a graph or as columns of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray

from .derived import DerivedQueries

if TYPE_CHECKING:
    import networkx

SYMBOLS = {"sum": "+", "product": "×"}  # noqa: RUF001  the sign of a product

NO_PARENT = -1
"""In place of the position of the root's parent."""

WIDEST_MATRIX = 256
"""Most variables of a matrix of correlations in the outline."""


class Node(NamedTuple):
    """A node, in the fields' units.

    Attributes
    ----------
    kind, scope
        sum, product, leaf or multivariate_leaf; numbers of its variables.
    records
        Records that it has learned.
    parent, share
        Position of its parent, and its weight there if that is a sum.
    mean, deviation
        Of a leaf, by variable of the scope.
    correlation
        Of a multivariate leaf: the upper triangle without the diagonal, row by row, in percent.
    """

    kind: str
    scope: list[int]
    records: float
    parent: int
    share: float | None = None
    mean: list[float] | None = None
    deviation: list[float] | None = None
    correlation: list[int] | None = None

    def with_gaussian(
        self, mean: FloatArray, covariance: FloatArray, location: FloatArray, scale: FloatArray
    ) -> Node:
        """Return the leaf with a Gaussian over its scope, which is in units z * scale + location.

        Of too many variables it has no correlations: their number grows with the square.
        """
        own, (deviation, correlation) = self.scope, _correlations(covariance)
        return self._replace(
            mean=(mean * scale[own] + location[own]).tolist(),
            deviation=(deviation * scale[own]).tolist(),
            correlation=correlation if len(own) <= WIDEST_MATRIX else None,
        )


def _correlations(covariance: FloatArray) -> tuple[FloatArray, list[int]]:
    """Return deviations (d,), and correlations in percent. A constant correlates with nothing."""
    deviation = np.sqrt(np.diagonal(covariance))
    spread = np.where(deviation > 0.0, deviation, np.inf)
    upper = np.triu_indices(len(spread), 1)
    correlation = covariance[upper] / (spread[upper[0]] * spread[upper[1]])
    return deviation, np.rint(100 * correlation).astype(int).tolist()


class Drawn(DerivedQueries):
    """Drawings of a model that lists its nodes, parents before their children."""

    def _nodes(self) -> list[Node]:
        raise NotImplementedError

    def to_dot(
        self,
        names: Sequence[str] | None = None,
        depends_on: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Write the structure in Graphviz's language, with the fields' names if given.

        ``depends_on`` has the categories on which fields depend, as `StreamScorer.dependences`
        returns them: a drawing of its own beside that of the network.
        """
        nodes, names = self._nodes(), self._names(names)
        lines = ["digraph spn {", "  node [fontname=sans fontsize=10];", "  edge [fontsize=8];"]
        for i, node in enumerate(nodes):
            shape = "circle" if node.mean is None else "box"
            lines.append(f"  n{i} [shape={shape} label={_quoted(_label(node, names))}];")
        for parent, child, share in edges(nodes):
            label = "" if share is None else f' [label="{share:.2g}"]'
            lines.append(f"  n{parent} -> n{child}{label};")
        for field, categories in (depends_on or {}).items():
            lines += (
                f"  {_quoted(each)} -> {_quoted(field)} [style=dashed];" for each in categories
            )
        return "\n".join([*lines, "}"]) + "\n"

    def to_networkx(self, names: Sequence[str] | None = None) -> networkx.DiGraph:
        """Build a networkx graph with the attributes kind, scope, count (nodes) and weight (edges).

        Raises
        ------
        ModuleNotFoundError
            networkx is not installed.
        """
        import networkx

        nodes, names, graph = self._nodes(), self._names(names), networkx.DiGraph()
        for i, node in enumerate(nodes):
            scope = [names[v] for v in node.scope]
            graph.add_node(i, kind=node.kind, scope=scope, count=node.records)
        for parent, child, share in edges(nodes):
            graph.add_edge(parent, child, weight=1.0 if share is None else share)
        return graph

    def outline(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the nodes as columns of the same length, parents before their children.

        ``kind``, ``parent`` (a position in the columns, -1 above the root), ``weight`` (share of a
        sum's child, else None), ``count`` (records that reached the node), ``scope`` (positions in
        ``fields``) and, for leaves, ``mean`` and ``deviation`` by variable of the scope, in the
        fields' units. ``correlation`` holds the upper triangle of a multivariate leaf's matrix
        without the diagonal, row by row, in percent; None of more than 256 fields, as it would grow
        with their square.
        """
        nodes = self._nodes()
        return {
            "fields": list(self._names(names)),
            "kind": [node.kind for node in nodes],
            "parent": [node.parent for node in nodes],
            "weight": [node.share for node in nodes],
            "count": [node.records for node in nodes],
            "scope": [node.scope for node in nodes],
            "mean": [node.mean for node in nodes],
            "deviation": [node.deviation for node in nodes],
            "correlation": [node.correlation for node in nodes],
        }


def edges(nodes: Sequence[Node]) -> list[tuple[int, int, float | None]]:
    """List parent, child and the child's weight below a sum, of each edge."""
    return [
        (node.parent, i, node.share) for i, node in enumerate(nodes) if node.parent != NO_PARENT
    ]


def _label(node: Node, names: Sequence[str]) -> str:
    if node.mean is None:
        return SYMBOLS[node.kind]
    return "\n".join(
        f"{names[v]} = {mean:.3g}" for v, mean in zip(node.scope, node.mean, strict=True)
    )


def _quoted(text: str) -> str:
    """Write a text as a string of Graphviz's language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
