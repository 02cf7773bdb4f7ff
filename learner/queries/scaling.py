"""Standardised units: location and scale of each variable, learned from its first values."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.state_schema import POSITIVE, Entry, expect, read
from faust_oslrau.learner.stored import Places
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, choose, load, spread, store
from faust_oslrau.learner.vector.math import larger, smaller

LARGEST_VALUE = 1e50
"""Standardised values are clipped here, so that squares of huge but finite input stay finite."""

CONSTANT_SHARE = 1e-3
"""Scale of a variable whose first values are all equal, as a share of that value: small enough to
show its first movement, large enough that rounding is not taken for movement."""

SMALLEST_SCALE = 1e-280
"""Least scale of a variable, so that densities stay finite where an entity has a smaller one."""


UNITS = {"location": Entry(("d",), nan=True), "scale": Entry(("d",), POSITIVE, nan=True)}


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
    def of_state(cls, arrays: Arrays, prefix: str = "") -> Scaling:
        """Return the scaling of a state; StateError if it cannot be one."""
        location, scale = read(arrays, UNITS, prefix)
        is_either = np.isnan(location) == np.isnan(scale)
        expect(len(scale) > 0 and is_either.all(), "a location and a scale for each variable")
        scaling = cls(len(scale))
        scaling.location, scaling.scale = location, scale
        return scaling

    def widened(self, places: Places, *, standardize: bool) -> Scaling:
        """Return the scaling with more variables, to be learned where it is one that is."""
        wider = Scaling(places.n) if standardize else Scaling.identity(places.n)
        wider.location[places.old], wider.scale[places.old] = self.location, self.scale
        return wider

    @classmethod
    def of_rows(cls, X: FloatArray) -> Scaling:
        """Return the scaling that rows (m, d) tell."""
        scaling = cls(X.shape[1])
        scaling.learn(X)
        return scaling

    @property
    def units(self) -> FloatArray:
        """Location and scale (2, d)."""
        return np.stack([self.location, self.scale])

    @property
    def n_observed(self) -> int:
        """How many variables were observed."""
        return int(np.count_nonzero(~np.isnan(self.scale)))

    @property
    def is_complete(self) -> bool:
        """Whether every variable was observed."""
        return self.n_observed == len(self.scale)

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
    return mean * largest, max(deviation * largest, SMALLEST_SCALE)


@kernel
def standardise(
    X: Array, location: Array, scale: Array, log_scale: Array, Z: Array, jacobian: Array
) -> None:
    """Fill ``Z`` (d, m) and ``jacobian`` (m,) from the rows of ``X`` (m, d)."""
    aligned_stack()
    m, d = X.shape
    block, totals = np.zeros((WIDTH, WIDTH)), np.empty((1, WIDTH))
    for r in range(0, m, WIDTH):
        n, total = min(WIDTH, m - r), spread(0.0)
        for first in range(0, d, WIDTH):  # rows of X and of Z by turns in the nearest cache
            last = min(first + WIDTH, d)
            for i in range(n):
                for v in range(first, last):
                    block[v - first, i] = X[r + i, v]
            for v in range(first, last):
                z = (load(block, v - first, 0) - location[v]) / scale[v]
                known, clipped = z == z, smaller(larger(z, -LARGEST_VALUE), LARGEST_VALUE)
                total = total + choose(known, log_scale[v], 0.0)
                store(block, v - first, 0, choose(known, clipped, np.nan))
                for i in range(n):
                    Z[v, r + i] = block[v - first, i]
        store(totals, 0, 0, total)
        for i in range(n):
            jacobian[r + i] = totals[0, i]
