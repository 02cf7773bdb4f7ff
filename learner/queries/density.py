"""NetworkDensity: every query that a network can answer exactly, in the units of its data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.density.components import Components, new_components
from faust_oslrau.learner.density.gaussian_kernels import GAUSSIAN_ENTROPY
from faust_oslrau.learner.errors import NotFittedError
from faust_oslrau.learner.network.layout import (
    KIND_NAMES,
    LEAF,
    MERGES_DENIED,
    MIXTURES,
    MULTIVARIATE_LEAF,
    MULTIVARIATE_LEAVES,
    SUM,
)
from faust_oslrau.learner.network.structure import Network
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.vector.blocks import row_sums

from .drawing import NO_PARENT, Drawn, Node
from .inference import given_others, moments, sample
from .predictive import add_network, most_leaves
from .scaling import Scaling


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
    for place, node in enumerate(live.tolist()):
        children = list(network.children(node))
        total = sum(weight for _, weight in children)
        for child, weight in children:
            found[places[child]] = place, weight / total if is_sum[place] else None
    return found


class Evaluation(NamedTuple):
    """How usual rows are, and what was computed for them that learning needs again.

    Attributes
    ----------
    log_density
        Log-density of each row (m,) in nats.
    rows, Z
        The rows (m, d), and the same in the network's own units (d, m).
    values
        Log-density of every node for every row (nodes, >= m), or None.
    network, n_records
        The model's network, and the number of records that the model had learned.
    """

    log_density: FloatArray
    rows: FloatArray
    Z: FloatArray
    values: FloatArray | None
    network: Network
    n_records: int


class NetworkDensity(Drawn):
    """Queries on a network with units for its variables; learning algorithms derive from it.

    Log-densities are in nats and in original units; low = anomalous. Missing values are NaN.
    """

    _network: Network | None = None
    _scaling: Scaling
    n_records_: int = 0

    def score_samples(
        self, X: ArrayLike, *, variance_floor: FloatArray | float | None = None
    ) -> FloatArray:
        """Log-density (m,) of each row of ``X`` (m, d) in nats, missing values marginalised.

        ``variance_floor`` raises every leaf variance to at least this, in standardised units: a
        number, or one for each variable (d,).

        Raises
        ------
        InvalidParameterError
            A floor is below 0 or NaN.
        NotFittedError
            Nothing was learned yet.
        InvalidInputError
            ``X`` does not fit the model.
        """
        network, Z, jacobian = self._query(X)
        if variance_floor is not None:
            valid = bool(np.all(np.asarray(variance_floor) >= 0))
            require(valid, "variance_floor", variance_floor, "at least 0")
            network = network.with_variance_floor(variance_floor)
        return network.log_density(Z) - jacobian

    def evaluate(self, X: ArrayLike) -> Evaluation:
        """Return log-densities of the rows of ``X`` (m, d); learning can reuse the evaluation."""
        network, rows = self._fitted(), self._check(X)
        Z, jacobian = self._scaling.apply(rows)
        log_density, values = network.evaluate(Z)
        return Evaluation(log_density - jacobian, rows, Z, values, network, self.n_records_)

    def usual_log_density(self, X: FloatArray) -> FloatArray:
        """Return the log-density (m,) that rows (m, d) with these fields have on average.

        If each were N(0, 1) in standardised units. So what a log-density is above it does not
        depend on the units of fields, nor on how many a row lacks.
        """
        nats = np.log(self._scaling.scale) + GAUSSIAN_ENTROPY
        missing = np.isnan(X + nats)
        if not missing.any():
            return np.repeat(-row_sums(nats[None]), len(X))
        return -row_sums(np.where(missing, 0.0, nats))

    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compare each field with the others: ``contributions`` and ``expected`` in one call.

        Returns three arrays (m, d): -log p(x_i | the other fields) in nats, NaN where x_i is
        missing, and the mean and standard deviation of the field given the others. Takes one pass
        up and one pass down the network, whatever the number of fields.
        """
        network, Z, _ = self._query(X)
        scale = self._scaling.scale
        others = given_others(network, Z)
        nats = np.where(np.isnan(Z), np.nan, others.nats + np.log(scale)[:, None]).T
        with np.errstate(over="ignore"):  # fields near 1e308 have a mean that no double holds
            mean = others.mean.T * scale + self._scaling.location
            deviation = np.sqrt(others.variance.T) * scale
        return nats, mean, deviation

    def conditional_moments(self, row: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d) of a row's missing fields given its observed ones.

        The mean of an observed field is its value, with covariance 0.
        """
        given = np.asarray(row, np.float64)
        network, Z, _ = self._query(given[None])
        mean, covariance = moments(network, Z[:, 0])
        scale = self._scaling.scale
        missing = np.isnan(given)
        mean = np.where(missing, mean * scale + self._scaling.location, given)
        return mean, np.where(np.outer(missing, missing), covariance * np.outer(scale, scale), 0.0)

    def predictive(self, X: FloatArray, more: int = 0) -> Components:
        """Return the Gaussians of the missing fields of rows: see `Predictive.predictive`."""
        network = self._fitted()
        components = new_components(X.shape[1], len(X), most_leaves(network) + more)
        Z, _ = self._scaling.apply(X)
        add_network(network, Z, self._scaling, components)
        return components

    def _sample(self, n: int, row: FloatArray, rng: np.random.Generator) -> FloatArray:
        network, Z, _ = self._query(row[None])
        rows = sample(network, n, rng, Z[:, 0])
        rows = rows * self._scaling.scale + self._scaling.location
        return np.where(np.isnan(row), rows, row)

    def _nodes(self) -> list[Node]:
        return list_nodes(self._fitted(), self._scaling.location, self._scaling.scale)

    @property
    def network_(self) -> Network:
        """The network itself, in standardised units; not to be changed."""
        return self._fitted()

    @property
    def scale_(self) -> FloatArray:
        """Unit of each variable (d,): its deviation in the first mini-batch, or 1."""
        self._fitted()
        return self._scaling.scale

    @property
    def n_nodes_(self) -> int:
        """Number of sum, product and leaf nodes, each counted once."""
        return self._fitted().n_nodes

    @property
    def n_edges_(self) -> int:
        """Number of edges."""
        network = self._fitted()
        return int(network.nodes["n_children"][network.live].sum())

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters: weights, means, variances and covariances."""
        return self._fitted().count_parameters()

    @property
    def depth_(self) -> int:
        """Nodes on the longest path from the root to a leaf."""
        return self._fitted().depth

    @property
    def node_counts_(self) -> dict[str, int]:
        """Number of nodes by kind: sum, product, leaf, multivariate_leaf."""
        return self._fitted().kind_counts()

    @property
    def structure_changes_(self) -> dict[str, int]:
        """Structure changes since the start.

        Mixtures and multivariate leaves made, and mixtures denied by the node budget.
        """
        header = self._fitted().header
        return {
            "mixture": int(header[MIXTURES]),
            "multivariate_leaf": int(header[MULTIVARIATE_LEAVES]),
            "denied": int(header[MERGES_DENIED]),
        }

    def _width(self) -> int | None:
        return None if self._network is None else self._network.n_variables

    def _query(self, X: ArrayLike) -> tuple[Network, FloatArray, FloatArray]:
        network = self._fitted()
        Z, jacobian = self._scaling.apply(self._check(X))
        return network, Z, jacobian

    def _fitted(self) -> Network:
        if self._network is None:
            raise NotFittedError
        return self._network
