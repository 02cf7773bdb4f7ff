"""Factors that drive the variables of all blocks, by which blocks are related."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import factor_kernels
from . import gaussian_kernels as kernels
from .leaves import LEAST_VARIANCE

FloatArray = NDArray[np.float64]

MOST_FACTORS = 64
"""Factors at the most: time and memory of a variable grow with their number. Streams with fewer
lose some tenths of a per cent of their log-likelihood, those with more gain for each factor."""

RECORDS_PER_FACTOR = 16
"""Records that a factor needs: more factors of the first records would be fitted to noise."""

SWEEPS = 5
"""Steps of EM from the first records on. Twenty bring nothing."""


def n_factors(n: int) -> int:
    """Return how many factors ``n`` first records tell of."""
    return max(1, min(MOST_FACTORS, n // RECORDS_PER_FACTOR))


class Factors:
    """Independent N(0, 1) factors f with loadings A (d, q): x = mean + A f + noise.

    Noise is taken as independent here (factor analysis), though within blocks it is not: factors of
    whitened blocks would follow chance correlations of few records.

    Attributes
    ----------
    mean
        Of the variables (d,).
    projection
        Matrix (q, d) that leads from deviations to the expected factors.
    covariance
        That of the factors given a record (q, q).
    """

    def __init__(self, mean: FloatArray, variance: FloatArray, loadings: FloatArray) -> None:
        explained = (loadings**2).sum(axis=1)
        noise = np.maximum(variance - explained, 0.0) + LEAST_VARIANCE
        weighed = product((loadings / noise[:, None]).T, loadings)
        factor = inverse_factor(np.eye(len(weighed)) + weighed)
        self.mean, self.covariance = mean, product(factor.T, factor)
        self.projection = product(self.covariance, (loadings / noise[:, None]).T)

    def expected(self, Z: FloatArray) -> FloatArray:
        """Return the expected factors (q, m) of complete columns (d, m)."""
        return product(self.projection, Z - self.mean[:, None])


def first_loadings(Z: FloatArray, n: int) -> FloatArray:
    """Take ``n`` of the columns of ``Z`` (d, m) as loadings (d, n) to begin with."""
    places = np.linspace(0, Z.shape[1] - 1, n).astype(np.int64)
    centred = Z[:, places] - Z.mean(axis=1)[:, None]
    return np.asarray(centred / np.sqrt(max(n, 1)), np.float64)


def product(
    A: FloatArray, B: FloatArray, *, lower_left: bool = False, lower_right: bool = False
) -> FloatArray:
    """Multiply matrices, of which some may be lower triangles.

    The order of sums is the same on every machine.
    """
    result = np.empty((len(A), B.shape[1]))
    left, right = np.ascontiguousarray(A), np.ascontiguousarray(B)
    factor_kernels.multiply(left, right, lower_left, lower_right, result)
    return result


def inverse_factor(matrix: FloatArray) -> FloatArray:
    """Return the inverse of the lower Cholesky factor of a matrix (q, q)."""
    inverse, log_norm = np.empty((1, *matrix.shape)), np.empty(1)
    kernels.factorise(np.ascontiguousarray(matrix)[None], inverse, log_norm)
    return np.asarray(inverse[0], np.float64)
