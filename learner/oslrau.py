"""oSLRAU: online structure learning with running average update (Hsu, Kalra and Poupart)."""

from __future__ import annotations

from typing import Self

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray

from .algorithm.expectation_maximisation import learn_mixtures
from .algorithm.learning import forget_and_evaluate, learn, structure_bound
from .algorithm.mixtures import FIRST_RECORDS, Sizes, add_mixtures, mixture_sizes
from .algorithm.new_variables import add_variables, widest_block
from .algorithm.start import WIDEST_BACKGROUND, background_nodes, initial_network
from .algorithm.tasks import LearningRule
from .model import Model
from .network.packing import pack_network, unpack_network
from .network.structure import Network
from .parameters import MOST_NODES, require
from .queries.density import Evaluation, NetworkDensity
from .queries.scaling import UNITS, Scaling
from .state import MOST_RECORDS
from .state_schema import Entry, read
from .stored import Places
from .vector.lanes import padded


class OSLRAU(NetworkDensity, Model):
    """Density of a stream of records: a sum-product network that grows in one pass.

    Parameters
    ----------
    corr_threshold
        Absolute correlation abs(S_ij) / sqrt(S_ii S_jj), in (0, 1], from which two variables
        under a product node are joined; ``threshold`` of the paper's Algorithm 2.
    max_leaf_vars
        Most variables in one multivariate Gaussian leaf; more variables make a mixture. ``nVars``
        of Algorithm 2. With 0 or 1 all leaves are univariate. None means 16, or one less than there
        are variables that were observed so far, so that a mixture can always grow.
    merges_per_batch
        Most pairs of children that a product node joins into leaves in one mini-batch; the paper
        joins one pair. None for no limit.
    min_count
        Records n that a product node must have seen before its children are merged; the paper
        has no such limit.
    n_init_components
        Components of the initial mixture, each with all variables independent; the paper's text
        starts with one.
    background
        Whether the mixture also has one Gaussian over all variables, which every record updates. It
        learns correlations from the start, and covers records that no component does. More than
        128 variables are divided into blocks of neighbours, with a Gaussian each. The paper has
        none.
    mixtures
        Whether two mixtures join a background of at most 128 variables after 480 records, in up to
        a third of the node budget: of Gaussians, and of products of mixtures of each variable.
        Expectation-maximisation learns both from every record. Records are then likelier, above all
        where values repeat or relations bend, and take more CPU.
    max_nodes
        Node budget, or None for no limit. A merge that would exceed it is not made. Where it is too
        short for one component, a network of d variables has some d + 3 nodes. The time for a
        record and the size of the state are proportional to the number of nodes: in batches of 256
        less than 1 ns a leaf to score and about 1 ns to learn (``python -m benchmarks speed``).
    memory
        Records after which the weight of a record in all averages is 1/e, so that the model follows
        a stream that changes. None weighs all records equally, as the paper does. Components whose
        records weigh less than one are removed when the budget is short.
    variance_floor
        Least variance of a leaf, in standardised units (with ``standardize``: relative to the
        variance of the first records).
    structure_until
        Records after which the structure no longer changes. None for never; 0 to learn only the
        parameters of the initial structure (the paper's Algorithm 1).
    standardize
        Whether to learn the location and scale of each variable from its first mini-batch.
        Densities are in original units in either case.
    random_state
        Seed of ``sample``; learning draws nothing at random.

    Attributes
    ----------
    n_records_
        Records learned so far.

    Notes
    -----
    Rows are records and columns variables: ``X`` is (m, d) in the variables' own units, NaN =
    missing. Log-densities are in nats per record; low = anomalous.

    In the symbols and numbered equations of the paper [1]_: the density is f_root (1), computed
    from the leaves upward. A child c of a sum node s has the weight w_sc = (n_c + 1) / (n_s +
    number of children), the smoothed form of (2) in the algorithms. The mean mu and covariance
    Sigma of a leaf are running averages (3, 4) over the records that reach it. So are those of a
    product node, whose correlations decide where the structure grows (Algorithms 2 to 5).

    References
    ----------
    .. [1] W. Hsu, A. Kalra and P. Poupart, "Online Structure Learning for Sum-Product Networks with
       Gaussian Leaves", 2017, arXiv:1701.05265.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> X = np.column_stack([x, x + 0.1 * rng.normal(size=2000)])
    >>> model = OSLRAU(max_nodes=100).partial_fit(X, batch_size=100)
    >>> model.n_records_
    2000
    >>> usual, odd = model.score_samples([[1.0, 1.0], [1.0, -1.0]])
    >>> bool(odd < usual)
    True
    >>> model.impute([[1.0, np.nan]]).round()
    array([[1., 1.]])
    >>> model.sample(3).shape
    (3, 2)
    >>> bool(OSLRAU.from_bytes(model.to_bytes()).score_samples([[1.0, 1.0]])[0] == usual)
    True
    """

    state_kind = "OSLRAU"
    _first: FloatArray

    def __init__(
        self,
        *,
        corr_threshold: float = 0.1,
        max_leaf_vars: int | None = None,
        merges_per_batch: int | None = None,
        min_count: int = 64,
        n_init_components: int = 4,
        background: bool = True,
        mixtures: bool = False,
        max_nodes: int | None = 2000,
        memory: float | None = None,
        variance_floor: float = 1e-4,
        structure_until: int | None = None,
        standardize: bool = True,
        random_state: int = 0,
    ) -> None:
        self.corr_threshold = corr_threshold
        self.max_leaf_vars = max_leaf_vars
        self.merges_per_batch = merges_per_batch
        self.min_count = min_count
        self.n_init_components = n_init_components
        self.background = background
        self.mixtures = mixtures
        self.max_nodes = max_nodes
        self.memory = memory
        self.variance_floor = variance_floor
        self.structure_until = structure_until
        self.standardize = standardize
        self.random_state = random_state

    @classmethod
    def paper(
        cls,
        *,
        corr_threshold: float = 0.1,
        min_count: int = 256,
        max_leaf_vars: int = 4,
        n_init_components: int = 2,
        structure_until: int | None = None,
    ) -> Self:
        """Return a model as in the paper: N(0, 1) start on standardised data, no budget or floor.

        ``min_count`` is the authors' mergebatch and ``max_leaf_vars`` their mvmaxscope.
        """
        return cls(
            corr_threshold=corr_threshold,
            min_count=min_count,
            max_leaf_vars=max_leaf_vars,
            merges_per_batch=1,
            n_init_components=n_init_components,
            background=False,
            max_nodes=None,
            variance_floor=0.0,
            structure_until=structure_until,
            standardize=False,
        )

    def check_parameters(self) -> None:
        """Raise InvalidParameterError for a hyper-parameter outside its range."""
        require(0 < self.corr_threshold <= 1, "corr_threshold", self.corr_threshold, "in (0, 1]")
        for name, least, most, may_be_none in (
            ("max_leaf_vars", 0, MOST_NODES, True),
            ("merges_per_batch", 1, MOST_NODES, True),
            ("min_count", 1, MOST_RECORDS, False),
            ("n_init_components", 1, MOST_NODES, False),
            ("max_nodes", 2, MOST_NODES, True),
            ("structure_until", 0, MOST_RECORDS, True),
        ):
            self._check_count(name, least, most, may_be_none)
        valid = self.background or not self.mixtures
        require(valid, "mixtures", self.mixtures, "False without a background")
        require(0 <= self.variance_floor < 1, "variance_floor", self.variance_floor, "in [0, 1)")
        require(self.memory is None or self.memory > 0, "memory", self.memory, "above 0, or None")

    def has_room(self, more: int) -> bool:
        """Say whether ``more`` variables can be added without another block of the background."""
        network = self._network
        return network is None or widest_block(network) + more <= WIDEST_BACKGROUND

    def add_variables(self, places: Places) -> None:
        """Add variables as if they had been missing in each record so far."""
        if self._network is not None and len(places.new) > 0:
            add_variables(self._network, places, self.variance_floor)
            self._scaling = self._scaling.widened(places, standardize=self.standardize)
            self._first = places.widened(self._first, 0)

    def _learn_rows(self, rows: FloatArray, batch_size: int, evaluation: Evaluation | None) -> None:
        network, scaling = self._start(rows.shape[1])
        if evaluation is not None and self._is_known(rows, evaluation, batch_size):
            self._learn(network, evaluation.Z, batch_size, evaluation.values)
            self.n_records_ += len(rows)
            return
        done = 0
        while done < len(rows):
            if not scaling.is_complete:
                scaling.learn(rows[done : done + batch_size])
            stretch = self._stretch(len(rows) - done, batch_size, scaling.is_complete)
            Z, _ = scaling.apply(rows[done : done + stretch])
            self._learn(network, Z, batch_size)
            self.n_records_ += stretch
            done += stretch

    def _arrays(self) -> Arrays:
        if self._network is None:
            return {}
        units = {"location": self._scaling.location, "scale": self._scaling.scale}
        first = {"first": self._first} if self._first.size else {}
        return units | first | pack_network(self._network)

    def _restore(self, arrays: Arrays) -> None:
        self._scaling = Scaling.of_state(arrays)
        d = len(self._scaling.scale)
        self._first = np.empty((d, 0))
        if "first" in arrays:
            entry, n = Entry(("d", "n"), nan=True), self.n_records_
            (self._first,) = read(arrays, {"first": entry}, d=(d,), n=(n,))
        packed = {name: array for name, array in arrays.items() if name not in (*UNITS, "first")}
        self._network = unpack_network(d, packed, self.variance_floor)

    def _start(self, d: int) -> tuple[Network, Scaling]:
        if self._network is None:
            self.check_parameters()
            left = self._budget(d) - 1 - background_nodes(d)  # beside the root
            components = min(self.n_init_components, left // (d + 1))
            self._network = initial_network(
                d, components, self.variance_floor, background=self.background
            )
            self._scaling = Scaling(d) if self.standardize else Scaling.identity(d)
            self._first = np.empty((d, 0))
        return self._network, self._scaling

    def _most_leaf_vars(self) -> int:
        if self.max_leaf_vars is not None:
            return self.max_leaf_vars
        return min(16, self._scaling.n_observed - 1)

    def _budget(self, d: int) -> int:
        fewest = d + 2 + background_nodes(d)  # with one component
        return MOST_NODES if self.max_nodes is None else max(self.max_nodes, fewest)

    def _mixtures_due(self, d: int) -> Sizes:
        """Return the sizes of the mixtures that the network is still to get."""
        waits = self.n_records_ == self._first.shape[1] < FIRST_RECORDS
        due = waits and self.mixtures and self._grows()
        return mixture_sizes(d, self._budget(d)) if due else Sizes(0, 0, 0)

    def _collect(self, Z: FloatArray, due: Sizes) -> None:
        """Keep the first records, and begin the mixtures with them."""
        none = self._first[:, :0]
        self._first = none if due.nodes(len(Z)) == 0 else np.hstack([self._first, Z])
        if self._first.shape[1] >= FIRST_RECORDS:
            add_mixtures(self._fitted(), self._first, due, self.variance_floor)
            self._first = none

    def _grows(self) -> bool:
        return self.structure_until is None or self.n_records_ < self.structure_until

    def _stretch(self, remaining: int, size: int, scaled: bool) -> int:
        """Return how many rows one call of the kernel can learn by the same rule and scaling."""
        if not scaled or self.mixtures:
            return min(size, remaining)
        if self.structure_until is None or not self._grows():
            return remaining
        batches = -(-(self.structure_until - self.n_records_) // size)
        return min(batches * size, remaining)

    def _is_known(self, rows: FloatArray, evaluation: Evaluation, size: int) -> bool:
        """Return whether learning ``rows`` in one mini-batch would start with this evaluation."""
        in_lanes = len(rows) > 1 or not self.mixtures  # the evaluation of a single row is not
        return (
            in_lanes
            and len(rows) <= size
            and self.memory is None  # with one, learning begins by forgetting
            and self._scaling.is_complete
            and evaluation.network is self._network
            and evaluation.n_records == self.n_records_
            and evaluation.values is not None
            and np.array_equal(rows, evaluation.rows)
        )

    def _learn(
        self, network: Network, Z: FloatArray, batch_size: int, values: FloatArray | None = None
    ) -> None:
        """Learn the columns of ``Z`` (d, m); ``values`` are those of the nodes, if known."""
        due = self._mixtures_due(network.n_variables)
        rule = LearningRule(
            self._grows(),
            float(self.corr_threshold),
            float(self.min_count),
            self._most_leaf_vars(),
            network.n_variables if self.merges_per_batch is None else self.merges_per_batch,
            self._budget(network.n_variables) - due.nodes(network.n_variables),
            np.inf if self.memory is None else float(self.memory),
            float(self.variance_floor),
        )
        complete, done = values is not None or not np.isnan(Z).any(), 0
        if self.mixtures:
            if values is None:
                values = np.empty((len(network.nodes), padded(max(Z.shape[1], 2))))
                forget_and_evaluate(network.pools, Z, values, rule)
                rule = rule._replace(memory=np.inf)  # that is done
            learn_mixtures(network.pools, Z, values, complete, rule.variance_floor)
        while done < Z.shape[1]:
            evaluated = values is not None
            if values is None:
                values = np.empty((len(network.nodes), padded(min(batch_size, Z.shape[1]))))
            done = learn(network.pools, Z, values, done, batch_size, complete, evaluated, rule)
            if done < Z.shape[1]:
                values = None  # nodes move
                network.reserve(*structure_bound(network.pools))
        self._collect(Z, due)
