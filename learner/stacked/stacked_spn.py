"""Densities of several kinds under one root, weighed by how well they foresee new records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.density.components import Components
from faust_oslrau.learner.errors import NotFittedError
from faust_oslrau.learner.model import Model
from faust_oslrau.learner.parameters import MOST_NODES, require
from faust_oslrau.learner.state import MOST_RECORDS

from . import members, predictive
from .contest import Contest
from .graph import Shape
from .members import Member
from .merging import merge_contests
from .packing import pack_contest, unpack_contest
from .predictive import StackedEvaluation, WeighedNetworks
from .training import Rule, Training, sizes

FEWEST_NODES = 100
"""Least node budget that leaves something to share out."""


class StackedSPN(Shape, Model[StackedEvaluation]):
    """Density of a stream of records, as a sum over sum-product networks of several kinds.

    The root's children are a product of independent variables, a sum of products over the same
    leaves, a mixture of Gaussians with full covariances, and one Gaussian over the whole stream at
    several widths. Their weights are those under which the last 512 records, each before it was
    learned, are likeliest: stacking (Smyth and Wolpert 1999). All leaves are Gaussian, so that
    marginals, conditionals and moments are exact.

    The first records, 1,008 to 4,080 of them by the number of fields, are kept, and the network is
    built anew from all of them each time their number has grown by half; after them each record is
    learned once.

    After a sudden change, a challenger fitted to the records since then enters beside the others,
    with parts of the same kinds. Each record is learned by the network that explains it. The old
    one goes when ``retire_after`` records have not needed it, and so does the challenger.

    Parameters
    ----------
    max_nodes
        Node budget, at least 100, shared out by the number d of fields alone. The network takes up
        to 17 d + 60 nodes if that is more. Beyond 128 fields it has no mixture of Gaussians; beyond
        512 the Gaussian over the whole stream has a covariance for each block of neighbours. After
        a sudden change there are two networks.
    memory
        Records after which the weight of a record in all averages has shrunk to 1/e, so that the
        model follows a stream that changes; None weighs all records alike.
    retire_after
        Records that must not need a network before it goes, and that a challenger must have
        learned before ``evaluate`` counts what it explains as usual. None for no challengers.
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

    state_kind = "StackedSPN"

    def __init__(
        self,
        *,
        max_nodes: int = 2000,
        memory: float | None = None,
        retire_after: int | None = 8192,
        random_state: int = 0,
    ) -> None:
        self.max_nodes = max_nodes
        self.memory = memory
        self.retire_after = retire_after
        self.random_state = random_state
        self._contest: Contest | None = None

    def check_parameters(self) -> None:
        """Raise InvalidParameterError for a hyper-parameter outside its range."""
        self._check_count("max_nodes", FEWEST_NODES, MOST_NODES)
        require(self.memory is None or self.memory > 0, "memory", self.memory, "above 0, or None")
        self._check_count("retire_after", 1, MOST_RECORDS - 1, may_be_none=True)
        self._check_count("random_state", 0, MOST_RECORDS - 1)

    def _learn_rows(
        self, rows: FloatArray, batch_size: int, evaluation: StackedEvaluation | None
    ) -> None:
        d = rows.shape[1]
        self.check_parameters()
        contest = self._contest = self._contest or Contest(d)
        rule = self._rule(d)
        known = evaluation is not None and self._is_known(rows, evaluation, batch_size)
        for start in range(0, len(rows), batch_size):
            told = evaluation.told if evaluation is not None and known else None
            contest.learn(rows[start : start + batch_size], rule, told)
        self.n_records_ = contest.n_records

    def _rule(self, d: int) -> Rule:
        """Return how a network of ``d`` variables learns."""
        memory = math.inf if self.memory is None else float(self.memory)
        share = sizes(d, self.max_nodes, self.memory)
        return Rule(share, memory, self.random_state, self.retire_after)

    def _is_known(self, rows: FloatArray, evaluation: StackedEvaluation, size: int) -> bool:
        """Whether an evaluation is what learning ``rows`` in one mini-batch would begin with."""
        if self._contest is None:
            return False
        now, then = self._contest.members(), evaluation.members
        return (
            len(rows) <= size
            and len(now) == len(then)
            and all(a.network is b.network for a, b in zip(now, then, strict=True))
            and all(member.scaling.is_complete for member in now)
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
        found, floor = self._members(), 0.0 if variance_floor is None else variance_floor
        return members.log_densities(found, self._check(X), floor)[0]

    def evaluate(self, X: ArrayLike) -> StackedEvaluation:
        """Measure how usual the rows of ``X`` (m, d) are, and keep what learning them can use.

        The log-density counts a challenger, the measure does not before the challenger has learned
        ``retire_after`` records: what came with a fault stays unusual.
        """
        found, rows = self._members(), self._check(X)
        told = members.evaluate(found, rows)
        usual = told.log_density if self._is_established else told.each[:, 0]
        return StackedEvaluation(
            usual[:, None], told.log_density, rows, told, found, self.n_records_,
            self._is_established,
        )  # fmt: skip

    @property
    def shares(self) -> FloatArray:
        """Shares (M,) of the networks in the root: one without a challenger."""
        return np.array([member.share for member in self._members()])

    def weighed(self, log_shares: FloatArray) -> WeighedNetworks:
        """Return the density of m rows, each with shares (m, M) of the networks of its own."""
        established = None if self._is_established else self.established
        return WeighedNetworks(self._members(), log_shares, established)

    @property
    def established(self) -> Self:
        """The model without a challenger that has learned less than ``retire_after`` records."""
        if self._is_established or self._contest is None:
            return self
        model = type(self)(**self.get_params())
        model.n_records_, model._contest = self.n_records_, self._contest.without_challenger()
        return model

    @property
    def _is_established(self) -> bool:
        """Whether many records support every network under the root."""
        challenger = None if self._contest is None else self._contest.challenger
        return challenger is None or challenger.n_records >= (self.retire_after or 0)

    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return each field against the others: ``contributions``, and what is ``expected``.

        Three arrays (m, d): -log p(x_i | the other fields) in nats, NaN where x_i is missing, and
        mean and standard deviation of the field given the others. In these moments wide leaves do
        not count, and a wide Gaussian counts as the one that it widens: they are there to bound
        the loss of a record, and with a deviation of 1e8 they would hide all others.
        """
        return members.given_others(self._members(), self._check(X))

    def conditional_moments(self, row: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d) of a row's missing fields given its observed ones.

        Observed fields keep their value, with covariance zero. Wide leaves and Gaussians do not
        count, as in `given_others`; samples come from them, too.
        """
        found, rows = self._members(), self._check(np.asarray(row, np.float64)[None])
        return members.moments(found, rows[0])

    def predictive(self, X: FloatArray, more: int = 0) -> Components:
        """Return the Gaussians of the missing fields of rows: see `Predictive.predictive`."""
        return predictive.components_of(self._members(), X, more)

    def _sample(self, n: int, row: FloatArray, rng: np.random.Generator) -> FloatArray:
        return members.sample(self._members(), n, rng, row)

    def _arrays(self) -> Arrays:
        return {} if self._contest is None else pack_contest(self._contest)

    def _restore(self, arrays: Arrays) -> None:
        self._contest = unpack_contest(arrays, self.n_records_)

    @classmethod
    def mixture(cls, models: Sequence[StackedSPN]) -> Self:
        """Return the mixture of models that have learned records, as `merge_models` does."""
        largest = max(models, key=lambda model: model.n_records_)
        model = cls(**largest.get_params())
        copies = [cls.from_bytes(each.to_bytes())._contest for each in models]
        contests = [contest for contest in copies if contest is not None]
        model._contest = merge_contests(contests)
        model.n_records_ = model._contest.n_records
        return model

    @property
    def scale_(self) -> FloatArray:
        """Standard deviation of each variable (d,) among the first records, the unit of leaves."""
        scale: FloatArray = self._members()[0].scaling.units[1]
        return scale

    def _width(self) -> int | None:
        return None if self._contest is None else self._contest.incumbent.n_variables

    def _members(self) -> list[Member]:
        found = [] if self._contest is None else self._contest.members()
        if not found:
            raise NotFittedError
        return found

    @property
    def _training(self) -> Training | None:
        """The incumbent in training."""
        return None if self._contest is None else self._contest.incumbent
