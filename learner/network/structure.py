"""The sum-product network: a rooted graph of sum, product and leaf nodes in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy as shallow_copy

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.vector.blocks import MOST_ROWS, neighbours_together, rows_per_block

from .editing import copy_network
from .evaluation import log_densities
from .layout import (
    BACKGROUND,
    EDGE,
    FIRST,
    FREE_EDGE,
    FREE_NODE,
    HEADER_SIZE,
    KIND_NAMES,
    LAST,
    LEAF,
    MULTIVARIATE_LEAF,
    N_NODES,
    NIL,
    NODE,
    NODES_TOP,
    ROOT,
    SCOPES_TOP,
    STATS_TOP,
    SUM,
    Pools,
    deepest,
    list_nodes,
    moments_length,
)
from .leaves import refresh_leaf, refresh_multivariate
from .validity import check_validity

NO_ROWS = np.empty(0, np.int64)
"""Value rows for `evaluate` when no node needs a row of its own."""


class Network:
    """Structure and parameters over ``n_variables`` variables, with exact inference.

    It does not know how it is learned: an algorithm edits the arrays through kernels.

    Parameters
    ----------
    n_variables
        Number d of variables.
    n_nodes, n_edges, n_scopes, n_stats
        Initial capacities of the pools.
    """

    def __init__(
        self, n_variables: int, n_nodes: int, n_edges: int, n_scopes: int, n_stats: int
    ) -> None:
        self.n_variables = n_variables
        self.header = np.zeros(HEADER_SIZE, np.int64)
        self.header[[ROOT, FREE_NODE, FREE_EDGE, FIRST, LAST, BACKGROUND]] = NIL
        self.header[SCOPES_TOP] = n_variables
        self.edges = np.zeros(n_edges, EDGE)
        self.scopes = np.zeros(n_variables + n_scopes, np.int64)
        self.scopes[:n_variables] = np.arange(n_variables)
        self.stats = np.zeros(n_stats)
        self.nodes = np.zeros(n_nodes, NODE)

    @property
    def pools(self) -> Pools:
        """The arrays of the network, as kernels take them."""
        return Pools(self.header, self.nodes, self.edges, self.scopes, self.stats)

    @property
    def root(self) -> int:
        """Index of the root node."""
        return int(self.header[ROOT])

    @property
    def background(self) -> int | None:
        """Index of the Gaussian over all variables that every record updates, if there is one."""
        return None if self.header[BACKGROUND] == NIL else int(self.header[BACKGROUND])

    @property
    def live(self) -> IntArray:
        """Indices of all nodes, children before parents."""
        return self._walk()[0]

    @property
    def depth(self) -> int:
        """Nodes on the longest path from the root to a leaf."""
        return self._walk()[1]

    def _walk(self) -> tuple[IntArray, int]:
        live = np.empty(self.n_nodes, np.int64)
        depth = list_nodes(self.root, self.nodes, self.edges, live)
        return live, depth

    def children(self, node: int) -> Iterator[tuple[int, float]]:
        """Yield each child of a node with its unnormalised weight, in order."""
        edge = int(self.nodes[node]["first_edge"])
        while edge != NIL:
            child, edge, weight = self.edges.item(edge)
            yield child, weight

    def scope(self, node: int) -> IntArray:
        """Variables of a node, ascending."""
        start, k = self.nodes[node]["scope"], self.nodes[node]["n_scope"]
        return self.scopes[start : start + k]

    def statistics(self, node: int) -> FloatArray:
        """Mean, counts, covariances and pair counts of a product or multivariate leaf."""
        start, k = self.nodes[node]["stats"], int(self.nodes[node]["n_scope"])
        return self.stats[start : start + moments_length(k)]

    def gaussian(self, leaf: int) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of a multivariate leaf, with the floor on the diagonal."""
        k = int(self.nodes[leaf]["n_scope"])
        statistics = self.statistics(leaf)
        upper = np.triu(statistics[2 * k :].reshape(k, k))
        covariance = upper + np.triu(upper, 1).T
        return statistics[:k].copy(), covariance + self.nodes[leaf]["variance"] * np.eye(k)

    def kind_counts(self) -> dict[str, int]:
        """Count the live nodes of each kind."""
        kinds = self.nodes["kind"][self.live]
        return {name: int(np.count_nonzero(kinds == kind)) for kind, name in KIND_NAMES.items()}

    def log_density(self, Z: FloatArray) -> FloatArray:
        """Log-density of each column of ``Z`` (d, m), missing values (NaN) marginalised."""
        if Z.shape[1] == 1:
            return self._evaluate(Z, int(self.header[NODES_TOP]), NO_ROWS)[0]
        order = neighbours_together(Z)
        found = self._evaluate(Z[:, order], deepest(self.n_variables), NO_ROWS)[0]
        result = np.empty_like(found)
        result[order] = found
        return result

    def evaluate(self, Z: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return the log-densities (m,) of the columns, and those of all nodes (nodes, >= m).

        The latter are None unless all columns fit into one block and no value is missing.
        """
        n_nodes = int(self.header[NODES_TOP])
        if Z.shape[1] <= rows_per_block(n_nodes) and not np.isnan(Z).any():
            return self._evaluate(Z, n_nodes, np.arange(n_nodes))
        return self.log_density(Z), None

    def _evaluate(
        self, Z: FloatArray, n_values: int, value_rows: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return log-densities, and the values of the last block; `evaluate` explains these."""
        result, rows = np.empty(Z.shape[1]), max(1, min(Z.shape[1], MOST_ROWS))
        values = log_densities(
            self.pools, np.ascontiguousarray(Z), rows, n_values, value_rows, result
        )
        return result, values

    def with_variance_floor(self, variance_floor: FloatArray | float) -> Network:
        """Copy the network with no leaf variance below a number, or one for each variable (d,).

        Univariate variances are raised to it; it is added to the diagonal of covariances.
        """
        copy = shallow_copy(self)
        copy.nodes, copy.stats = self.nodes.copy(), self.stats.copy()
        floors = np.broadcast_to(np.asarray(variance_floor, np.float64), self.n_variables)
        for i in copy.live:
            if copy.nodes[i]["kind"] == LEAF:
                refresh_leaf(i, copy.nodes, floors[copy.nodes[i]["scope"]])
            elif copy.nodes[i]["kind"] == MULTIVARIATE_LEAF:
                copy._widen(i, floors[copy.scope(i)])
        return copy

    def _widen(self, leaf: int, floors: FloatArray) -> None:
        """Give a multivariate leaf the least of its floors (k,), and the rest of each for good."""
        least, k = floors.min(), len(floors)
        covariance = self.statistics(leaf)[2 * k :].reshape(k, k)
        covariance[np.diag_indices(k)] += floors - least
        refresh_multivariate(leaf, self.nodes, self.stats, least)

    def check_validity(self) -> None:
        """Check that the network is a density that an algorithm can go on learning.

        It is complete: all children of a sum have its scope. It is decomposable: the scopes of a
        product's children are disjoint and make up its own. It is a tree over all variables, no
        deeper than these allow. All nodes but univariate leaves are listed for evaluation, children
        first. Weights are positive, no variance or count is negative, and all numbers are finite.

        Raises
        ------
        InvalidNetworkError
            One of these does not hold; the message says which.
        """
        check_validity(self)

    def reserve(self, n_nodes: int, n_edges: int, n_scopes: int, n_stats: int) -> None:
        """Make room for this many more entries in each pool, in addition to twice those in use.

        Sorts the nodes by their order of evaluation, and discards what removed nodes have left.
        """
        live, header = self.live, self.header
        room = n_nodes, n_edges, n_scopes, n_stats
        used = len(live), len(live), header[SCOPES_TOP], header[STATS_TOP]
        larger = Network(self.n_variables, *(2 * n + m for n, m in zip(used, room, strict=True)))
        copy_network(live, self.pools, larger.pools, self.n_variables)
        self.header, self.nodes, self.edges, self.scopes, self.stats = larger.pools

    def count_parameters(self) -> int:
        """Count the free parameters: weights but one of each sum, means, variances, covariances."""
        # column by column, as indexing whole records copies all of their columns
        kinds = self.nodes["kind"][self.live]
        is_leaf = (kinds == LEAF) | (kinds == MULTIVARIATE_LEAF)
        sums = self.nodes["n_children"][self.live][kinds == SUM].astype(np.int64)
        sizes = self.nodes["n_scope"][self.live][is_leaf].astype(np.int64)
        return int((sums - 1).sum() + (sizes + sizes * (sizes + 1) // 2).sum())

    @property
    def n_nodes(self) -> int:
        """Live nodes, each counted once."""
        return int(self.header[N_NODES])
