"""The mixed density of rows, each with the covariance and weights of its own entity."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faust_oslrau.learner.density import components
from faust_oslrau.learner.density.components import Components
from faust_oslrau.learner.protocol import Predictive
from faust_oslrau.learner.row_densities import RowDensities, RowPredictives, Which, of_rows

from .habit_kernels import Predicted, Shared
from .mixed_components import NODES, add_habits
from .mixed_kernels import given_others, log_density

FloatArray = NDArray[np.float64]


class MixedDensity(RowPredictives):
    """The density of each of some rows given its entity, for comparisons of their fields.

    Rows are in units of their entities, and may lack fields that the mixed ones had.
    """

    def __init__(self, network: Predictive, shared: Shared, predicted: Predicted) -> None:
        self._network, self._shared, self._predicted = network, shared, predicted

    def of(self, which: Which) -> Self:
        """Return the densities of some of the rows, by a mask or by their numbers."""
        predicted = Predicted._make(column[which] for column in self._predicted)
        return type(self)(of_rows(self._network, which), self._shared, predicted)

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return the log-density (m,) of rows (m, d)."""
        rows, result = np.ascontiguousarray(X, np.float64), np.empty(len(self._predicted.freedom))
        network = self._network.score_samples(rows)
        log_density(rows, network, self._shared, self._predicted, result)
        return result

    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compare each field with the others of its row, as `Learner.given_others` does."""
        rows = np.ascontiguousarray(X, np.float64)
        result = np.empty((3, *rows.shape))
        network = np.array(self._network.given_others(rows), order="C")
        given_others(
            rows, self._network.score_samples(rows), network, self._shared, self._predicted, result
        )
        return result[0], result[1], result[2]

    def predictive(self, X: FloatArray, more: int = 0) -> Components:
        """Return the Gaussians of the missing fields of rows: see `Predictive.predictive`."""
        shared = self._shared
        room = len(shared.weight) + NODES + more
        if np.isnan(X).all():
            found, log_density = self._of_anything(X, room), np.zeros(len(X))
        else:
            found, log_density = self._network.predictive(X, room), self._network.score_samples(X)
        add_habits(X, log_density, shared, self._predicted, found)
        return found

    def _of_anything(self, X: FloatArray, room: int) -> Components:
        """Return the network's Gaussians alone of rows of which nothing is known.

        These are worked out once, unless the network has shares of its own in each row.
        """
        if isinstance(self._network, RowDensities):
            return self._network.predictive(X, room)
        one = self._network.predictive(X[:1])
        most = int(one.n.max(initial=0))
        found = components.new_components(X.shape[1], len(X), most + room)
        found.n[:], found.parameters[:, :, :most] = one.n, one.parameters[:, :, :most]
        return found
