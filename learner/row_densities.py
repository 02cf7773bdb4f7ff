"""Densities of rows of which each has one of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask

from .density import components
from .density.components import Components
from .protocol import Comparable

Which = Mask | IntArray | slice
"""Some of several rows."""

D = TypeVar("D", bound=Comparable)


class RowDensities(ABC):
    """A `Comparable` where each of k rows has a density of its own; it takes k rows."""

    @abstractmethod
    def of(self, which: Which) -> Self:
        """Return the densities of some of the rows."""

    @abstractmethod
    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density (k,) of each row in nats."""

    @abstractmethod
    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compare each field with the others of its row: see `Learner.given_others`."""


class RowPredictives(RowDensities):
    """A `Predictive` where each of k rows has a density of its own; it takes k rows."""

    @abstractmethod
    def predictive(self, X: FloatArray, more: int = 0) -> Components:
        """Return the Gaussians of the missing fields of rows: see `Predictive.predictive`."""

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
