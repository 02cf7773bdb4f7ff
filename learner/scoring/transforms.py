"""Fields learned on another scale: logarithms of latencies, roots of counts, with exact densities.

A density of y = t(x) gives one of x: log p(x) = log p(y) + log t'(x). So scores stay in the fields'
own units, and can be compared between transforms.

A count is learned as the square root of the count plus a number between 0 and 1 (Denuit and
Lambert, "Constraints on concordance measures in bivariate discrete data", 2005). The density
of the sum integrates over each unit interval to the probability of its count. The number depends on
the record's place in the stream alone; without it, the few values that small counts have would be
points between which a mixture of Gaussians expects nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.errors import InvalidInputError, InvalidParameterError
from faust_oslrau.learner.vector.compiler import Array, kernel

from .blame import Blame
from .reference import FACTOR, SHIFT

IDENTITY, LOG, LOG1P, ASINH, COUNT = range(5)

NAMES = {"log": LOG, "log1p": LOG1P, "asinh": ASINH, "count": COUNT}

LOWER_BOUNDS = {"log": 0.0, "log1p": -1.0, "asinh": -math.inf, "count": -0.5}
"""Values of a field must be above the bound of its transform."""

LEAST_ROOT = 1e-3
"""Where the slope of a count is taken if the root expected of it is below."""

PLACES, BITS = 1024.0, np.uint64(54)
"""A count is spread over so many places between it and the next, by the bits of a hash above."""


class Transforms:
    """Transforms of some columns: ``log``, ``log1p`` = log(1 + x), ``asinh``, or ``count``.

    Parameters
    ----------
    names
        Name of the transform by column number; other columns are as they are.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        for column, name in names.items():
            if name not in NAMES or not isinstance(column, int | np.integer) or column < 0:
                raise InvalidParameterError(
                    f"transform {name!r} of column {column}: expected one of {', '.join(NAMES)}"
                )
        self.names = dict(names)

    def apply(self, X: FloatArray) -> FloatArray:
        """Return the rows (m, d) with their columns transformed.

        Raises
        ------
        InvalidInputError
            A value is outside the range of its transform.
        """
        if not self.names:
            return X
        for column, name in self.names.items():
            if column >= X.shape[1]:
                raise InvalidInputError(f"X: expected a column {column} to transform")
            bad = X[:, column] <= LOWER_BOUNDS[name]
            if bad.any():
                raise InvalidInputError(
                    f"X: expected values above {LOWER_BOUNDS[name]:g} in column {column}, "
                    f"transformed by {name}, got {X[bad, column][0]:g}"
                )
        Y = X.copy()
        transform(Y, self._kinds(X.shape[1]))
        return Y

    def spread(self, Y: FloatArray, first: int) -> FloatArray:
        """Return transformed rows (m, d), the first of number ``first``, with their counts spread.

        That is, with the root of the count plus a number between 0 and 1 in place of 1/2.
        """
        if "count" not in self.names.values():
            return Y
        result = Y.copy()
        spread(result, self._kinds(Y.shape[1]), first)
        return result

    def log_slope(self, Y: FloatArray) -> FloatArray:
        """Return log t'(x) (m, d) of transformed rows, 0 where nothing is transformed."""
        result = np.zeros(Y.shape)
        if self.names:
            log_slope(Y, self._kinds(Y.shape[1]), result)
        return result

    def log_jacobian(self, Y: FloatArray) -> FloatArray:
        """Return the sum (m,) of the log-slopes of each row's observed fields."""
        total = np.zeros(len(Y))
        slopes = self.log_slope(Y) if self.names else Y
        for column in self.names:
            total += np.nan_to_num(slopes[:, column])
        return total

    def undo(self, Y: FloatArray) -> FloatArray:
        """Return the rows (m, d) in the fields' own units."""
        X = Y.copy()
        if self.names:
            undo(X, self._kinds(Y.shape[1]))
        return X

    def undo_blame(self, blame: Blame) -> Blame:
        """Return the blame in the fields' own units, in the order of the transformed fields.

        The expected value is the mean of the transformed field, transformed back; the deviation is
        divided by the slope there.
        """
        if not self.names:
            return blame
        at_mean = self.log_slope(blame.expected)
        return blame._replace(
            nats=blame.nats - self.log_slope(blame.value),
            usual=blame.usual - at_mean,
            expected=self.undo(blame.expected),
            deviation=blame.deviation * np.exp(-at_mean),
        )

    def _kinds(self, d: int) -> IntArray:
        kinds = np.full(d, IDENTITY)
        for column, name in self.names.items():
            kinds[column] = NAMES[name]
        return kinds


@kernel
def transform(X: Array, kinds: Array) -> None:
    """Transform columns in place; one value at a time, so that bits depend on it alone."""
    for v in range(X.shape[1]):
        for r in range(X.shape[0]):
            if kinds[v] == LOG:
                X[r, v] = math.log(X[r, v])
            elif kinds[v] == LOG1P:
                X[r, v] = math.log1p(X[r, v])
            elif kinds[v] == ASINH:
                X[r, v] = math.asinh(X[r, v])
            elif kinds[v] == COUNT:
                X[r, v] = 2.0 * math.sqrt(X[r, v] + 0.5)


@kernel
def spread(Y: Array, kinds: Array, first: int) -> None:
    """Spread transformed counts in place; the numbers are a hash of row and column."""
    for v in range(Y.shape[1]):
        if kinds[v] == COUNT:
            for r in range(Y.shape[0]):
                bits = (np.uint64(first + r) * np.uint64(Y.shape[1]) + np.uint64(v)) * FACTOR
                bits = (bits ^ (bits >> SHIFT)) * FACTOR
                off = (np.float64(bits >> BITS) + 0.5) / PLACES - 0.5
                Y[r, v] = math.sqrt(max(Y[r, v] * Y[r, v] + 4.0 * off, 1.0 / PLACES))


@kernel
def undo(Y: Array, kinds: Array) -> None:
    """Undo ``transform`` in place; infinite beyond the range of a double."""
    for v in range(Y.shape[1]):
        for r in range(Y.shape[0]):
            if kinds[v] == LOG:
                Y[r, v] = np.exp(Y[r, v])
            elif kinds[v] == LOG1P:
                Y[r, v] = np.expm1(Y[r, v])
            elif kinds[v] == ASINH:
                Y[r, v] = np.sinh(Y[r, v])
            elif kinds[v] == COUNT and Y[r, v] == Y[r, v]:
                Y[r, v] = math.floor(max(Y[r, v], 0.0) ** 2 / 4.0)


@kernel
def log_slope(Y: Array, kinds: Array, result: Array) -> None:
    """Fill ``result`` with log t'(x) at y = t(x)."""
    for v in range(Y.shape[1]):
        for r in range(Y.shape[0]):
            y = Y[r, v]
            if kinds[v] == LOG or kinds[v] == LOG1P:
                result[r, v] = -y
            elif kinds[v] == ASINH:  # t' = 1 / cosh(y)
                result[r, v] = math.log(2.0) - abs(y) - math.log1p(math.exp(-2.0 * abs(y)))
            elif kinds[v] == COUNT:  # t' = 2 / y
                result[r, v] = math.log(2.0 / max(y, LEAST_ROOT))
