"""The sum-product network: a rooted graph of sum, product and leaf nodes in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy as shallow_copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ._density import FEW, list_nodes, log_densities
from ._layout import (
    BACKGROUND,
    EDGE,
    EDGES_TOP,
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
    TASK_FIELDS,
    block_length,
    product_block,
)
from ._moments import refresh_leaf, refresh_multivariate
from ._structure import (
    add_edge,
    add_factored_model,
    copy_nodes,
    deepest,
    link_in_order,
    list_children,
    move_scopes,
    move_statistics,
    new_block,
    new_node,
)

MOST_ROWS, LEAST_ROWS = 256, 64
"""Rows evaluated at a time: more are no quicker, fewer lose time at the ends of loops."""

VALUES_PER_BLOCK = 4_000_000
"""Values of nodes, over all rows, from which on fewer rows are evaluated at a time where they are
kept: malloc keeps arrays below 32 MB for the next call, while larger ones are fresh pages each
time."""


def rows_per_block(n_nodes: int) -> int:
    """Rows to evaluate at a time where so many nodes keep their values."""
    return max(LEAST_ROWS, min(MOST_ROWS, VALUES_PER_BLOCK // n_nodes))


def neighbours_together(Z: NDArray[np.float64]) -> NDArray[np.intp] | slice:
    """Order of the columns of ``Z`` (d, m) in which those side by side are more or less alike.

    Those that lack the same variables meet, and, of few variables, those near each other.
    """
    missing = np.isnan(Z)
    if Z.shape[1] > 1 and missing.any():
        return np.lexsort(np.packbits(missing, axis=0))
    return np.argsort(Z[0]) if len(Z) <= FEW else slice(None)


class Network:
    """Structure and parameters over ``n_variables`` variables, with exact inference.

    Knows nothing of how it is learned: an algorithm edits the arrays through kernels.

    Parameters
    ----------
    n_variables
        Number d of variables.
    n_nodes, n_edges, n_scopes, n_stats
        Capacities of the pools to start with.
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
        self._allocate_nodes(n_nodes)

    def _allocate_nodes(self, n_nodes: int) -> None:
        self.nodes = np.zeros(n_nodes, NODE)
        self.tasks = np.zeros((n_nodes, TASK_FIELDS), np.int64)

    @classmethod
    def mixture_of_independents(
        cls, n_variables: int, n_components: int, variance_floor: float, *, background: bool
    ) -> Self:
        """Start a network: a sum over equal products of N(0, 1) leaves, or one such product.

        With a background the root is a sum in any case, and a multivariate N(0, I) its first
        child.
        """
        d, k = n_variables, n_components
        n_stats = k * product_block(d) + block_length(MULTIVARIATE_LEAF, d)
        network = cls(d, k * (d + 1) + 2, k * (d + 1) + 1, 0, n_stats)
        components = [
            add_factored_model(
                network.header, network.nodes, network.edges, network.scopes, network.stats,
                0, d, np.zeros(d), np.ones(d), variance_floor, NIL,
            )
            for _ in range(k)
        ]  # fmt: skip
        if background:
            network.header[BACKGROUND] = network._standard_gaussian(variance_floor)
            components.insert(0, int(network.header[BACKGROUND]))
        network.header[ROOT] = components[0]
        if len(components) > 1:
            network.header[ROOT] = new_node(network.header, network.nodes, SUM, 0, d, NIL)
            for component in components:
                add_edge(network.header, network.nodes, network.edges, network.root, component, 1.0)
        return network

    def _standard_gaussian(self, variance_floor: float) -> int:
        """Add a leaf N(0, I) over all variables, which counts as one observation."""
        d = self.n_variables
        leaf = new_node(self.header, self.nodes, MULTIVARIATE_LEAF, 0, d, NIL)
        start = new_block(self.header, self.stats, block_length(MULTIVARIATE_LEAF, d))
        self.nodes[leaf]["stats"] = start
        self.stats[start + d : start + 2 * d] = 1.0
        matrix = self.stats[start + 2 * d : start + product_block(d)].reshape(d, d)
        matrix[:] = np.tril(np.ones((d, d)))  # variances and pair counts 1, covariances 0
        refresh_multivariate(leaf, self.nodes, self.stats, variance_floor)
        return leaf

    @property
    def root(self) -> int:
        """Index of the root node."""
        return int(self.header[ROOT])

    @property
    def background(self) -> int | None:
        """Index of the Gaussian over all variables that every record updates, if there is one."""
        return None if self.header[BACKGROUND] == NIL else int(self.header[BACKGROUND])

    @property
    def live(self) -> NDArray[np.int64]:
        """Indices of all nodes, children before parents."""
        return self._walk()[0]

    @property
    def depth(self) -> int:
        """Nodes on the longest path from the root to a leaf."""
        return self._walk()[1]

    def _walk(self) -> tuple[NDArray[np.int64], int]:
        live = np.empty(self.n_nodes, np.int64)
        depth = list_nodes(self.root, self.nodes, self.edges, live, self.tasks)
        return live, depth

    def children(self, node: int) -> Iterator[tuple[int, float]]:
        """Yield each child of a node with its unnormalised weight, in order."""
        n = int(self.nodes[node]["n_children"])
        children, weights = np.empty(n, np.int64), np.empty(n)
        list_children(node, self.nodes, self.edges, children, weights)
        yield from zip(children.tolist(), weights.tolist(), strict=True)

    def scope(self, node: int) -> NDArray[np.int64]:
        """Variables of a node, ascending."""
        start, k = self.nodes[node]["scope"], self.nodes[node]["n_scope"]
        return self.scopes[start : start + k]

    def statistics(self, node: int) -> NDArray[np.float64]:
        """Mean, counts, covariances and pair counts of a product or multivariate leaf."""
        start, k = self.nodes[node]["stats"], int(self.nodes[node]["n_scope"])
        return self.stats[start : start + product_block(k)]

    def whitening(self, leaf: int) -> NDArray[np.float64]:
        """Inverse (k, k) of the lower Cholesky factor of a multivariate leaf's covariance."""
        start, k = self.nodes[leaf]["stats"], int(self.nodes[leaf]["n_scope"])
        return self.stats[start + product_block(k) :][: k * k].reshape(k, k)

    def gaussian(self, leaf: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and covariance of a multivariate leaf, with the floor on the diagonal."""
        k = int(self.nodes[leaf]["n_scope"])
        block = self.statistics(leaf)
        upper = np.triu(block[2 * k :].reshape(k, k))
        covariance = upper + np.triu(upper, 1).T
        return block[:k].copy(), covariance + self.nodes[leaf]["variance"] * np.eye(k)

    def kind_counts(self) -> dict[str, int]:
        """Count the live nodes of each kind."""
        kinds = self.nodes["kind"][self.live]
        return {name: int(np.count_nonzero(kinds == kind)) for kind, name in KIND_NAMES.items()}

    def log_density(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log-density of each column of ``Z`` (d, m), missing values (NaN) marginalised."""
        order = neighbours_together(Z)
        one = Z.shape[1] == 1
        n_values = int(self.header[NODES_TOP]) if one else deepest(self.n_variables)
        found = self._evaluate(Z[:, order], n_values, np.empty(0, np.int64))[0]
        result = np.empty_like(found)
        result[order] = found
        return result

    def evaluate(
        self, Z: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the log-densities (m,) of the columns, and those of all nodes (nodes, >= m).

        The latter only where all columns fit into one block and none lacks a value.
        """
        n_nodes = int(self.header[NODES_TOP])
        if Z.shape[1] <= rows_per_block(n_nodes) and not np.isnan(Z).any():
            return self._evaluate(Z, n_nodes, np.arange(n_nodes))
        return self.log_density(Z), None

    def _evaluate(
        self, Z: NDArray[np.float64], n_values: int, kept: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log-densities, and the last block's of the nodes that are ``kept``, row by row."""
        result, rows = np.empty(Z.shape[1]), max(1, min(Z.shape[1], MOST_ROWS))
        values = log_densities(
            self.header, self.nodes, self.edges, self.scopes, self.stats,
            np.ascontiguousarray(Z), rows, n_values, kept, result,
        )  # fmt: skip
        return result, values

    def with_variance_floor(self, variance_floor: float) -> Network:
        """Copy the network with no leaf variance below ``variance_floor``.

        Univariate variances are raised to it; it is added to the diagonal of covariances.
        """
        copy = shallow_copy(self)
        copy.nodes, copy.stats = self.nodes.copy(), self.stats.copy()
        for i in copy.live:
            if copy.nodes[i]["kind"] == LEAF:
                refresh_leaf(i, copy.nodes, variance_floor)
            elif copy.nodes[i]["kind"] == MULTIVARIATE_LEAF:
                refresh_multivariate(i, copy.nodes, copy.stats, variance_floor)
        return copy

    def reserve(self, n_nodes: int, n_edges: int, n_scopes: int, n_stats: int) -> None:
        """Make room for this many more entries in each pool, and as many again as are in use.

        Moves nodes into the order of their evaluation, and drops what removed ones have left.
        """
        live, header = self.live, self.header
        nodes, edges, n = self.nodes, self.edges, len(live)
        moved = np.full(len(nodes), NIL)
        moved[live] = np.arange(n)
        self._allocate_nodes(2 * n + n_nodes)
        self.edges = np.zeros(2 * n + n_edges, EDGE)
        copy_nodes(live, nodes, edges, moved, self.nodes, self.edges)
        scopes, stats = self.scopes, self.stats
        self.scopes = np.zeros(2 * header[SCOPES_TOP] + n_scopes, np.int64)
        self.stats = np.zeros(2 * header[STATS_TOP] + n_stats)
        header[SCOPES_TOP] = move_scopes(self.nodes, n, self.n_variables, scopes, self.scopes)
        header[STATS_TOP] = move_statistics(self.nodes, n, stats, self.stats)
        header[[NODES_TOP, EDGES_TOP]] = n, n - 1
        header[[FREE_NODE, FREE_EDGE]] = NIL
        for slot in (ROOT, BACKGROUND):
            if header[slot] != NIL:
                header[slot] = moved[header[slot]]
        link_in_order(header, self.nodes, n)

    def count_parameters(self) -> int:
        """Free parameters: weights less one a sum, means, and variances or covariances."""
        # Column by column: whole records would be copied with all their columns.
        kinds = self.nodes["kind"][self.live]
        is_leaf = (kinds == LEAF) | (kinds == MULTIVARIATE_LEAF)
        sums = self.nodes["n_children"][self.live][kinds == SUM].astype(np.int64)
        sizes = self.nodes["n_scope"][self.live][is_leaf].astype(np.int64)
        return int((sums - 1).sum() + (sizes + sizes * (sizes + 1) // 2).sum())

    @property
    def n_nodes(self) -> int:
        """Live nodes, each counted once."""
        return int(self.header[N_NODES])
