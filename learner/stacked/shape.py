"""Size and structure of the networks under a root, to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from faust_oslrau.learner.queries.derived import DerivedQueries

from . import graph
from .members import Member

if TYPE_CHECKING:
    import networkx


class Shape(DerivedQueries):
    """Answers of a model that has networks under one root."""

    def _members(self) -> list[Member]:
        raise NotImplementedError

    def to_dot(self, names: Sequence[str] | None = None) -> str:
        """Write the structure in Graphviz's language, with the fields' names if given."""
        return graph.to_dot(self._nodes(), self._names(names))

    def to_networkx(self, names: Sequence[str] | None = None) -> networkx.DiGraph:
        """Build a networkx graph of the structure, whose nodes know kind, scope and count."""
        return graph.to_networkx(self._nodes(), self._names(names))

    def outline(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the structure as columns of plain numbers; `graph.outline` explains them."""
        return graph.outline(self._nodes(), self._names(names))

    def _nodes(self) -> list[graph.Node]:
        found = self._members()
        lists = [graph.list_nodes(member.network, *member.units) for member in found]
        return graph.under_one_root(lists, [member.share for member in found])

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
