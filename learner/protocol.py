"""The interfaces of a learner: what scores need of it, and of densities of rows.

And rows as a layer before it gives them on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.density import components
from faust_oslrau.learner.density.components import Components


class InUnits(NamedTuple):
    """Rows in units that differ from record to record.

    Attributes
    ----------
    rows
        The rows (m, d) in these units; missing values stay missing.
    log_jacobian
        Sum (m,) of the logarithms of the observed fields' slopes.
    units
        Of each value. Those of an hour (m, d, 2) are shift and ratio: a value is the shift plus the
        ratio times the one here. Those of categories (m, d, 3) have the ratio's logarithm, too.
        Those of an entity (m, d, 3) are location, scale and degrees of freedom, as `levels.predict`
        has them; in them, rows are about standard Gaussian.
    """

    rows: FloatArray
    log_jacobian: FloatArray
    units: FloatArray


class Measured(Protocol):
    """What ``evaluate`` finds of rows."""

    @property
    def log_density(self) -> FloatArray:
        """Log-density of each row (m,) in nats."""


class Comparable(Protocol):
    """A density that compares the fields of a record with each other."""

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density (m,) of each row in nats; a row's bits depend on that row alone."""

    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compare each field with the others of its row; return three arrays (m, d).

        -log p(x_i | the other fields) in nats, NaN where x_i is missing; mean and standard
        deviation of x_i given the others.
        """


class Predictive(Comparable, Protocol):
    """A density that tells what to expect of fields that a record lacks."""

    def conditional_quantiles(
        self, X: ArrayLike, levels: Sequence[float]
    ) -> tuple[FloatArray, FloatArray]:
        """Return means (m, d) and quantiles (q, m, d) of missing fields given the observed ones.

        An observed field is its value. A row's bits depend on that row alone.
        """

    def predictive(self, X: FloatArray, more: int = 0) -> Components:
        """Return the Gaussians that the missing fields of rows (m, d) have given the observed ones.

        With room for ``more`` in each field of each row. The weights of a field add up to 1, but
        for negligible ones.
        """


Which = Mask | IntArray | slice
"""Some of several rows."""

D = TypeVar("D", bound=Comparable)


class RowDensities(Comparable):
    """A density where each of k rows has one of its own; it takes k rows."""

    @abstractmethod
    def of(self, which: Which) -> Self:
        """Return the densities of some of the rows."""


class RowPredictives(RowDensities, Predictive):
    """A `Predictive` where each of k rows has a density of its own; it takes k rows."""

    def conditional_quantiles(
        self, X: ArrayLike, levels: Sequence[float]
    ) -> tuple[FloatArray, FloatArray]:
        """Return means and quantiles of missing fields: see `Predictive.conditional_quantiles`."""
        rows, wanted = np.ascontiguousarray(X, np.float64), np.asarray(levels, np.float64)
        return components.conditional_quantiles(
            rows, wanted, lambda at: self.of(at).predictive(rows[at])
        )


def of_rows(density: D, which: Which) -> D:
    """Return the density of some of the rows, where rows have densities of their own."""
    return density.of(which) if isinstance(density, RowDensities) else density
