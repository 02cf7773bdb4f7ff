"""Densities of several kinds under one root, weighed by how well they foresee new records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faust_oslrau.learner.errors import NotFittedError, StateError
from faust_oslrau.learner.parameters import Parameters, require
from faust_oslrau.learner.queries.derived import DerivedQueries
from faust_oslrau.learner.state import MOST_RECORDS, pack, record_count, unpack

from . import graph, queries
from .network import Evaluated, StackedNetwork
from .packing import pack_training, unpack_training
from .sizes import sizes
from .training import Rule, Training

if TYPE_CHECKING:
    import networkx

FloatArray = NDArray[np.float64]

FEWEST_NODES = 100
"""Least node budget that leaves something to share out."""

MOST_NODES = 2**31 - 1


class StackedEvaluation(NamedTuple):
    """Rows as a model sees them: what to tell of them, and what learning them would ask for again.

    Attributes
    ----------
    measures
        How usual each row is: its log-density (m, 1).
    rows
        The rows (m, d).
    evaluated
        What the network says of them.
    network, n_records
        Of the model, which had learned so many records.
    """

    measures: FloatArray
    rows: FloatArray
    evaluated: Evaluated
    network: StackedNetwork
    n_records: int


class StackedSPN(Parameters, DerivedQueries):
    """Density of a stream of records, as a sum over sum-product networks of several kinds.

    The root's children are a product of independent variables, a sum of products over the same
    leaves, a mixture of Gaussians with full covariances, one Gaussian over the whole stream at
    several strengths of shrinkage and several widths, and the network that `OSLRAU` grows. Their
    weights are those under which the last 512 records, each before it was learned, are likeliest:
    stacking (Smyth and Wolpert 1999). All leaves are Gaussian, so that marginals, conditionals and
    moments are exact.

    The first records, 1,008 to 4,080 of them by the number of fields, are kept, and the network is
    built anew from all of them each time their number has doubled; after them each record is
    learned once.

    Parameters
    ----------
    max_nodes
        Node budget, at least 100, shared out by the number d of fields alone. Beyond some 120
        fields the network takes up to 17 d + 60 nodes if that is more. Beyond 128 it has no mixture
        of Gaussians and no grown network, beyond 256 the Gaussian over the whole stream is a
        product over blocks of neighbouring fields. So time and state grow in proportion to d.
    tree_nodes
        Nodes of these for the network that `OSLRAU` grows, 0 for none, at most half of them.
    memory
        Records after which the weight of a record in all averages has shrunk to 1/e, so that the
        model follows a stream that changes; None weighs all records alike.
    random_state
        Seed of what learning and ``sample`` draw.

    Attributes
    ----------
    n_records_
        Records learned so far.

    Notes
    -----
    Rows are records and columns variables: ``X`` is (m, d) in the variables' own units, NaN =
    missing. Log-densities are in nats per record; low = anomalous.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> X = np.column_stack([x, x + 0.1 * rng.normal(size=2000)])
    >>> model = StackedSPN().partial_fit(X, batch_size=256)
    >>> usual, odd = model.score_samples([[1.0, 1.0], [1.0, -1.0]])
    >>> bool(odd < usual)
    True
    >>> model.impute([[1.0, np.nan]]).round()
    array([[1., 1.]])
    >>> bool(StackedSPN.from_bytes(model.to_bytes()).score_samples([[1.0, 1.0]])[0] == usual)
    True
    """

    def __init__(
        self,
        *,
        max_nodes: int = 2000,
        tree_nodes: int = 300,
        memory: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.max_nodes = max_nodes
        self.tree_nodes = tree_nodes
        self.memory = memory
        self.random_state = random_state
        self.n_records_ = 0
        self._training: Training | None = None

    def check_parameters(self) -> None:
        """Raise InvalidParameterError for a hyper-parameter outside its range."""
        valid = FEWEST_NODES <= self.max_nodes <= MOST_NODES
        require(valid, "max_nodes", self.max_nodes, f"{FEWEST_NODES} to {MOST_NODES}")
        valid = 0 <= self.tree_nodes <= self.max_nodes / 2
        require(valid, "tree_nodes", self.tree_nodes, "0 to half of max_nodes")
        require(self.memory is None or self.memory > 0, "memory", self.memory, "above 0, or None")
        seeds = 0 <= self.random_state < MOST_RECORDS
        require(seeds, "random_state", self.random_state, f"0 to {MOST_RECORDS - 1}")

    def partial_fit(
        self,
        X: ArrayLike,
        y: None = None,
        *,
        batch_size: int | None = None,
        evaluation: StackedEvaluation | None = None,
    ) -> Self:
        """Learn the rows of ``X`` (m, d): one mini-batch, or several of ``batch_size`` rows.

        ``evaluation`` of these rows by ``evaluate`` spares to do that again, to the same bits. One
        of other rows, by another model, or from before it learned more, is of no use, nor harm.

        Raises
        ------
        InvalidInputError
            ``X`` is not a matrix of finite or missing numbers with as many columns as before.
        InvalidParameterError
            A hyper-parameter or ``batch_size`` is outside its range.
        """
        require(batch_size is None or batch_size >= 1, "batch_size", batch_size, "at least 1")
        rows = self._check(X)
        if len(rows) == 0:
            return self
        d = rows.shape[1]
        self.check_parameters()
        training = self._training = self._training or Training(d)
        memory = math.inf if self.memory is None else float(self.memory)
        rule = Rule(
            sizes(d, self.max_nodes, self.tree_nodes, self.memory), memory, self.random_state
        )
        size = batch_size or len(rows)
        known = evaluation is not None and self._is_known(rows, evaluation, size)
        for start in range(0, len(rows), size):
            evaluated = evaluation.evaluated if evaluation is not None and known else None
            training.learn(rows[start : start + size], rule, evaluated)
        self.n_records_ = training.n_records
        return self

    def _is_known(self, rows: FloatArray, evaluation: StackedEvaluation, size: int) -> bool:
        """Whether an evaluation is what learning ``rows`` in one mini-batch would begin with."""
        return (
            len(rows) <= size
            and self._training is not None
            and self._training.scaling.is_complete
            and evaluation.network is self._training.network
            and evaluation.n_records == self.n_records_
            and np.array_equal(rows, evaluation.rows, equal_nan=True)
        )

    def score_samples(
        self, X: ArrayLike, *, variance_floor: FloatArray | float | None = None
    ) -> FloatArray:
        """Log-density (m,) of each row of ``X`` (m, d) in nats, missing values marginalised.

        ``variance_floor`` raises every leaf variance to at least this, in standardised units: a
        number, or one for each variable (d,).

        Raises
        ------
        NotFittedError
            Nothing was learned yet.
        InvalidInputError
            ``X`` does not fit the model.
        """
        network, Z, jacobian = self._query(X)
        floor = 0.0 if variance_floor is None else variance_floor
        return network.log_density(Z, floor) - jacobian

    def evaluate(self, X: ArrayLike) -> StackedEvaluation:
        """Measure how usual the rows of ``X`` (m, d) are, and keep what learning them can use."""
        network, Z, jacobian = self._query(X)
        evaluated = network.evaluate(Z)
        measures = (evaluated.log_density - jacobian)[:, None]
        return StackedEvaluation(measures, self._check(X), evaluated, network, self.n_records_)

    def proximity(self, X: ArrayLike) -> FloatArray:
        """Return minus the distance (m,) of each row from the stream's mean, in deviations.

        The Mahalanobis distance by the Gaussian over the whole stream. Wide leaves bound the
        log-density; the distance has no bound, so that the guard of a `StreamScorer` can tell how
        far a row is. Rows that lack fields count as if the missing ones were as far as the others.
        """
        network, Z, _ = self._query(X)
        return queries.proximity(network, Z)

    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return each field against the others: ``contributions``, and what is ``expected``.

        Three arrays (m, d): -log p(x_i | the other fields) in nats, NaN where x_i is missing, and
        mean and standard deviation of the field given the others. In these moments wide leaves do
        not count, and a wide Gaussian counts as the one that it widens: they are there to bound
        the loss of a record, and with a deviation of 1e5 they would hide all others.
        """
        network, Z, _ = self._query(X)
        location, scale = self._units()
        others, mean, variance = queries.given_others(network, Z)
        nats = others - network.log_density(Z) + np.log(scale)[:, None]
        nats = np.where(np.isnan(Z), np.nan, nats)
        return nats.T, mean.T * scale + location, np.sqrt(variance.T) * scale

    def contributions(self, X: ArrayLike) -> FloatArray:
        """Return -log p(x_i | the other fields) (m, d) in nats, NaN where x_i is missing."""
        return self.given_others(X)[0]

    def conditional_moments(self, row: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d) of a row's missing fields given its observed ones.

        Observed fields keep their value, with covariance zero. Wide leaves and Gaussians do not
        count, as in `given_others`; samples come from them, too.
        """
        given = np.asarray(row, np.float64)
        network, Z, _ = self._query(given[None])
        mean, covariance = queries.moments(network, Z[:, 0])
        location, scale = self._units()
        missing = np.isnan(given)
        mean = np.where(missing, mean * scale + location, given)
        return mean, np.where(np.outer(missing, missing), covariance * np.outer(scale, scale), 0.0)

    def sample(
        self,
        n: int = 1,
        *,
        given: ArrayLike | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Draw ``n`` rows (n, d), with the observed fields of the row ``given`` held fixed.

        ``random_state`` is a seed or generator; without one, the model's own is used.
        """
        d = self._network().n_variables
        row = np.full(d, np.nan) if given is None else np.asarray(given, np.float64)
        network, Z, _ = self._query(row[None])
        seed = self.random_state if random_state is None else random_state
        location, scale = self._units()
        rows = queries.sample(network, n, np.random.default_rng(seed), Z[:, 0]) * scale + location
        return np.where(np.isnan(row), rows, row)

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
        return graph.list_nodes(self._network(), *self._units())

    def to_bytes(self) -> bytes:
        """Write the whole model, so that learning can go on from it to the same bits."""
        values = {"parameters": self.plain_params(), "n_records": self.n_records_}
        if self._training is None or self._training.network is None:
            return pack("StackedSPN", values, {})
        return pack("StackedSPN", values, pack_training(self._training, self._training.network))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a model that ``to_bytes`` wrote.

        Raises
        ------
        StateError
            The bytes are damaged, of another format version, or no model.
        """
        values, arrays = unpack(data, "StackedSPN")
        try:
            model = cls(**values["parameters"])
            model.check_parameters()
            model.n_records_ = record_count(values["n_records"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise StateError(f"state: expected the parameters of a model, {error}") from error
        if arrays:
            model._training = unpack_training(arrays, model.n_records_)
        return model

    @property
    def scale_(self) -> FloatArray:
        """Standard deviation of each variable (d,) among the first records, the unit of leaves."""
        return self._units()[1]

    @property
    def n_nodes_(self) -> int:
        """Number of sum, product and leaf nodes, each counted once."""
        return sum(self.node_counts_.values())

    @property
    def node_counts_(self) -> dict[str, int]:
        """Number of nodes by kind: sum, product, leaf, multivariate_leaf."""
        return self._network().kind_counts

    @property
    def n_edges_(self) -> int:
        """Number of edges."""
        return self._network().n_edges

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters: weights, means, variances and covariances."""
        return self._network().n_parameters

    @property
    def depth_(self) -> int:
        """Nodes on the longest path from the root to a leaf."""
        shared = 5  # root, sum of products, product, sum of leaves, leaf
        tree = self._network().tree
        return shared if tree is None else max(shared, 1 + tree.learner.depth_)

    @property
    def structure_changes_(self) -> dict[str, int]:
        """Structure changes of the grown network, since units last changed: see `OSLRAU`."""
        tree = self._network().tree
        none = {"mixture": 0, "multivariate_leaf": 0, "denied": 0}
        return none if tree is None else tree.learner.structure_changes_

    def _units(self) -> tuple[FloatArray, FloatArray]:
        """Location and scale (d,), 0 and 1 where a variable was never observed."""
        scaling = self._fitted().scaling
        return np.nan_to_num(scaling.location), np.nan_to_num(scaling.scale, nan=1.0)

    def _width(self) -> int | None:
        return None if self._training is None else len(self._training.scaling.location)

    def _query(self, X: ArrayLike) -> tuple[StackedNetwork, FloatArray, FloatArray]:
        network, scaling = self._network(), self._fitted().scaling
        Z, jacobian = scaling.apply(self._check(X))
        return network, Z, jacobian

    def _network(self) -> StackedNetwork:
        network = self._fitted().network
        if network is None:
            raise NotFittedError("the model has learned nothing yet: call partial_fit first")
        return network

    def _fitted(self) -> Training:
        if self._training is None:
            raise NotFittedError("the model has learned nothing yet: call partial_fit first")
        return self._training
