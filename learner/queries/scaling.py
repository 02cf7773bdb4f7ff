"""Standardised units: location and scale of each variable, learned from its first values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.vector.compiler import Array, kernel

FloatArray = NDArray[np.float64]

LARGEST_VALUE = 1e50
"""Standardised values are clipped here, so that squares of huge but finite input stay finite."""

CONSTANT_SHARE = 1e-3
"""Scale of a variable whose first values are all equal, as a share of that value: small enough to
show its first movement, large enough that rounding is not taken for movement."""


class Scaling:
    """Location and scale (d,) of the variables, NaN before a variable is first observed."""

    def __init__(self, n_variables: int) -> None:
        self.location = np.full(n_variables, np.nan)
        self.scale = np.full(n_variables, np.nan)

    @classmethod
    def identity(cls, n_variables: int) -> Scaling:
        """Return the scaling that changes no value."""
        scaling = cls(n_variables)
        scaling.location[:], scaling.scale[:] = 0.0, 1.0
        return scaling

    @classmethod
    def of(cls, location: FloatArray | None, scale: FloatArray | None) -> Scaling:
        """Return a scaling from stored arrays; StateError if they cannot be one."""
        if location is None or scale is None or location.shape != scale.shape or scale.ndim != 1:
            raise StateError("state: expected a location and a scale for each variable")
        unknown = np.isnan(location) & np.isnan(scale)
        known = np.isfinite(location) & np.isfinite(scale) & (scale > 0)
        if len(scale) == 0 or not (unknown | known).all():
            raise StateError("state: expected finite locations and positive scales")
        scaling = cls(len(scale))
        scaling.location, scaling.scale = location, scale
        return scaling

    @property
    def is_complete(self) -> bool:
        """Whether every variable was observed."""
        return not np.isnan(self.scale).any()

    def learn(self, X: FloatArray) -> None:
        """Set location and scale of the variables first observed in ``X`` (m, d)."""
        for v in np.flatnonzero(np.isnan(self.scale)):
            column = X[:, v]
            column = column[~np.isnan(column)]
            if len(column) > 0:
                self.location[v], self.scale[v] = location_and_scale(column)

    def apply(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the standardised columns (d, m) and each row's log-Jacobian (m,).

        A variable never observed so far is missing in every row.
        """
        Z, jacobian = np.empty(X.shape[::-1]), np.empty(len(X))
        standardise(X, self.location, self.scale, np.log(self.scale), Z, jacobian)
        return Z, jacobian


def location_and_scale(column: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation; for equal values a share of their size as scale."""
    largest = float(np.abs(column).max())
    if largest == 0.0:
        return 0.0, 1.0
    # in units of the largest value no square overflows or underflows
    scaled = column / largest
    mean, deviation = float(scaled.mean()), float(scaled.std())
    if deviation < 1e-12:
        deviation = CONSTANT_SHARE
    return mean * largest, max(deviation * largest, float(np.finfo(float).tiny))


@kernel
def standardise(
    X: Array, location: Array, scale: Array, log_scale: Array, Z: Array, jacobian: Array
) -> None:
    """Fill ``Z`` (d, m) and ``jacobian`` (m,) from the rows of ``X`` (m, d)."""
    for r in range(X.shape[0]):
        total = 0.0
        for v in range(X.shape[1]):
            z = (X[r, v] - location[v]) / scale[v]
            if math.isnan(z):
                Z[v, r] = np.nan
            else:
                Z[v, r] = min(max(z, -LARGEST_VALUE), LARGEST_VALUE)
                total += log_scale[v]
        jacobian[r] = total
