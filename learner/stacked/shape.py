"""Size and structure of the networks under a root, to look at."""

from __future__ import annotations

from faust_oslrau.learner.queries.drawing import Drawn, Node

from .graph import list_nodes, under_one_root
from .members import Member


class Shape(Drawn):
    """Answers of a model that has networks under one root."""

    def _members(self) -> list[Member]:
        raise NotImplementedError

    def _nodes(self) -> list[Node]:
        found = self._members()
        lists = [list_nodes(member.network, *member.units) for member in found]
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
