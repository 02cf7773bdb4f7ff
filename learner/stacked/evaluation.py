"""What a stacked density says of rows, to tell it and to learn from it."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.components import Components
from faust_oslrau.learner.protocol import Predictive, RowPredictives, Which

from . import members, predictive
from . import members as joint
from .members import Joint, Member, Members


class StackedEvaluation(NamedTuple):
    """Rows as a model sees them: what to tell of them, and what learning them would ask for again.

    Attributes
    ----------
    measures
        How usual each row is (m, 1): its log-density without a challenger.
    log_density
        The log-density of each row (m,).
    rows
        The rows (m, d).
    told
        What the networks under the root say of them.
    members, n_records
        Of the model, which had learned so many records.
    is_established
        Whether many records support every network.
    """

    measures: FloatArray
    log_density: FloatArray
    rows: FloatArray
    told: Joint
    members: list[Member]
    n_records: int
    is_established: bool

    @property
    def by_network(self) -> FloatArray:
        """Log-density (m, M) of each row by each network under the root."""
        return self.told.each

    def weighed(self, log_shares: FloatArray) -> Self:
        """Return the evaluation with other shares (m, M) of the networks in each row."""
        log_density = members.mixed(self.told.each, log_shares)[0]
        measures = log_density[:, None] if self.is_established else self.measures
        return self._replace(measures=measures, log_density=log_density)


class WeighedNetworks(RowPredictives):
    """The density of each of m rows, with shares of its own of each network.

    Parameters
    ----------
    members
        The networks.
    log_shares
        Logarithm of their shares of each row (m, M).
    established
        The density without what only recent records support; None if it is this one.
    """

    def __init__(
        self, members: Members, log_shares: FloatArray, established: Predictive | None
    ) -> None:
        self._members, self._log_shares = members, log_shares
        self._established = established

    def of(self, which: Which) -> Self:
        """Return the densities of some of the rows."""
        return type(self)(self._members, self._log_shares[which], self._established)

    @property
    def established(self) -> Predictive:
        """The density without what only recent records support."""
        return self if self._established is None else self._established

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density (m,) of each row of ``X`` (m, d) in nats."""
        rows = np.ascontiguousarray(X, np.float64)
        return joint.log_densities(self._members, rows, log_shares=self._log_shares)[0]

    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compare each field with the others of its row: see `Learner.given_others`."""
        rows = np.ascontiguousarray(X, np.float64)
        return joint.given_others(self._members, rows, self._log_shares)

    def predictive(self, X: FloatArray, more: int = 0) -> Components:
        """Return the Gaussians of the missing fields of rows: see `Predictive.predictive`."""
        return predictive.components_of(self._members, X, more, self._log_shares)
