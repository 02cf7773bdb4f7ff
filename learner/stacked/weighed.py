"""Networks under a root whose shares are others in each row."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.components import Components
from faust_oslrau.learner.protocol import Predictive
from faust_oslrau.learner.row_densities import RowPredictives, Which

from . import members as joint
from . import predictive
from .members import Members


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
