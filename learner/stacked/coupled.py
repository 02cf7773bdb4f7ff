"""Gaussians of all variables that have a covariance for each block and factors in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import factor_kernels as kernels
from .factors import product
from .gaussian_kernels import LOG_2PI, factorise
from .gaussians import Gaussians

FloatArray = NDArray[np.float64]

ROWS = 64
"""Incomplete columns taken at a time: each needs a matrix of the factors."""


class Told(NamedTuple):
    """What columns of one block tell of the factors, by each Gaussian.

    Attributes
    ----------
    information, precision
        (K, m, q) and (K, m, q, q), which are added to those of other blocks.
    """

    information: FloatArray
    precision: FloatArray


class BlockGiven(NamedTuple):
    """The Gaussians of one block, given the other variables of some columns.

    Attributes
    ----------
    columns
        The columns that they are for.
    own
        The variables of the block.
    gaussians
        One for each strength.
    distance, norm
        Squared distances and log-densities at distance 0 of the other variables, (K, m) each for
        all columns.
    observed
        Number of observed ones among the others (m,).
    """

    columns: slice
    own: slice
    gaussians: Gaussians
    distance: FloatArray
    norm: FloatArray
    observed: FloatArray

    def of(self, which: slice) -> BlockGiven:
        """Return some of the Gaussians."""
        distance, norm = self.distance[which], self.norm[which]
        return self._replace(gaussians=self.gaussians.part(which), distance=distance, norm=norm)


class CoupledGaussians:
    """K Gaussians of all variables: x = mean + A f + noise, with noise of each block on its own.

    Attributes
    ----------
    blocks
        The variables of each block.
    gaussians
        Those of each block given that all factors are 0.
    loadings
        Loadings A (K, d, q) of the factors f, which are N(0, 1); q is 0 where there is one block.
    """

    def __init__(
        self, blocks: list[slice], gaussians: list[Gaussians], loadings: FloatArray
    ) -> None:
        self.blocks, self.gaussians, self.loadings = blocks, gaussians, loadings
        self._mean = self.mean(0)
        if self.n_factors > 0:
            self._couple()

    @classmethod
    def of_one(cls, block: slice, gaussians: Gaussians) -> CoupledGaussians:
        """Take Gaussians of one block, which is all variables."""
        return cls([block], [gaussians], np.empty((*gaussians.mean.shape, 0)))

    @property
    def n_factors(self) -> int:
        """Number q of factors."""
        return int(self.loadings.shape[2])

    def part(self, which: NDArray[np.int64]) -> CoupledGaussians:
        """Return some of the Gaussians, in this order."""
        if np.array_equal(which, np.arange(len(self.loadings))):
            return self
        gaussians = [each.part(which) for each in self.gaussians]
        return CoupledGaussians(self.blocks, gaussians, self.loadings[which])

    def _couple(self) -> None:
        """Prepare what complete columns say of the factors."""
        K, d, q = self.loadings.shape
        self._gains = [
            _products(each.whitening, self.loadings[:, own], lower_left=True)
            for own, each in zip(self.blocks, self.gaussians, strict=True)
        ]
        self._precisions = [_products(_transposed(gains), gains) for gains in self._gains]
        factor, self._log_root = _factors_of(np.eye(q) + sum(self._precisions))
        self._projection = np.zeros((K, q + q % 2, d))
        for own, each, gains in zip(self.blocks, self.gaussians, self._gains, strict=True):
            weighed = _products(factor, _transposed(gains), lower_left=True)
            self._projection[:, :q, own] = _products(weighed, each.whitening, lower_right=True)

    def with_floor(self, floor: FloatArray | float) -> CoupledGaussians:
        """Add to the variances what the least one is short of a floor, for each variable (d,)."""
        floors = np.broadcast_to(floor, len(self._mean))
        gaussians = [
            each.with_floor(floors[own])
            for own, each in zip(self.blocks, self.gaussians, strict=True)
        ]
        return CoupledGaussians(self.blocks, gaussians, self.loadings)

    def mean(self, k: int) -> FloatArray:
        """Mean (d,) of one Gaussian."""
        return np.concatenate([each.mean[k] for each in self.gaussians])

    def covariance(self, k: int) -> FloatArray:
        """Covariance (d, d) of one Gaussian."""
        result = self.loadings[k] @ self.loadings[k].T
        for own, each in zip(self.blocks, self.gaussians, strict=True):
            result[own, own] += each.part(slice(k, k + 1)).covariance()[0]
        return np.asarray(result, np.float64)

    def conditional(self, k: int, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d) of one Gaussian given what is observed of ``z`` (d,)."""
        missing, mean, covariance = np.isnan(z), self.mean(k), self.covariance(k)
        rest, known = np.ix_(missing, missing), np.ix_(~missing, ~missing)
        cross = covariance[np.ix_(~missing, missing)]
        gain = np.linalg.solve(covariance[known], cross)
        result, spread = z.copy(), np.zeros(covariance.shape)
        result[missing] = mean[missing] + (z - mean)[~missing] @ gain
        spread[rest] = covariance[rest] - cross.T @ gain
        return result, spread

    def distances(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Squared distances and log-densities at distance 0, (K, m) each, of what is observed."""
        distance, norm = _added(self._of_blocks(Z))
        if self.n_factors == 0:
            return distance, norm
        explained = np.empty(distance.shape)
        kernels.projected_squares(Z, self._mean, self._projection, explained)
        norm += self._log_root[:, None]
        incomplete = np.flatnonzero(np.isnan(explained[0]))
        for start in range(0, len(incomplete), ROWS):
            some = incomplete[start : start + ROWS]
            told = self._tell(np.ascontiguousarray(Z[:, some]))
            explained[:, some], log_root = _explained(_total(told, self.n_factors))
            norm[:, some] += log_root - self._log_root[:, None]
        return distance - explained, norm

    def _of_blocks(self, Z: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Distances of each block, given that all factors are 0."""
        pairs = zip(self.blocks, self.gaussians, strict=True)
        return [gaussians.distances(Z[own]) for own, gaussians in pairs]

    def _tell(self, Z: FloatArray) -> list[Told]:
        """Tell what each block of columns (d, m) says of the factors."""
        K, _, q = self.loadings.shape
        found = []
        for b, (own, gaussians) in enumerate(zip(self.blocks, self.gaussians, strict=True)):
            precision = np.repeat(self._precisions[b][:, None], Z.shape[1], axis=1)
            told = Told(np.zeros((K, Z.shape[1], q)), precision)
            kernels.tell_factors(Z[own], gaussians.mean, gaussians.whitening, self._gains[b], *told)
            found.append(told)
        return found

    def given_the_others(self, Z: FloatArray) -> Iterator[BlockGiven]:
        """Yield each block given the other variables of columns ``Z`` (d, m), column by column.

        One block that is all variables comes once, for all columns.
        """
        if self.n_factors == 0:
            none = np.zeros((len(self.loadings), Z.shape[1]))
            everything, observed = slice(0, Z.shape[1]), np.zeros(Z.shape[1])
            yield BlockGiven(everything, self.blocks[0], self.gaussians[0], none, none, observed)
            return
        told, found = self._tell(Z), self._of_blocks(Z)
        for b, own in enumerate(self.blocks):
            total = _total(_without(told, b), self.n_factors)
            (distance, norm), (explained, log_root) = _added(_without(found, b)), _explained(total)
            missing = np.isnan(np.delete(Z, own, axis=0))
            observed = np.count_nonzero(~missing, axis=0).astype(np.float64)
            for r, gaussians in enumerate(self._given(b, total, missing)):
                yield BlockGiven(
                    slice(r, r + 1), own, gaussians, distance - explained, norm + log_root, observed
                )

    def _given(self, b: int, others: Told, missing: NDArray[np.bool_]) -> Iterator[Gaussians]:
        """Yield block ``b`` for each column given what others tell of the factors.

        Columns of which others lack the same, ``missing`` (d - size, m), have a covariance in
        common.
        """
        mean, covariance = _moments(others)
        for r in range(missing.shape[1]):
            if not missing[:, r].any():
                spread = self._given_complete[b]
            elif r == 0 or (missing[:, r] != missing[:, r - 1]).any():
                spread = self._spread(b, covariance[:, r])
            yield spread.moved(self._moved(b, mean[:, r]))

    def factors(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means (K, m, q) and covariances (K, m, q, q) of the factors given columns (d, m)."""
        if self.n_factors == 0:
            shape = len(self.loadings), Z.shape[1], 0
            return np.empty(shape), np.empty((*shape, 0))
        return _moments(_total(self._tell(Z), self.n_factors))

    def _moved(self, b: int, factors: FloatArray) -> FloatArray:
        """Means (K, size) of block ``b`` with these factors (K, q)."""
        gaussians, loadings = self.gaussians[b], self.loadings[:, self.blocks[b]]
        return gaussians.mean + _products(loadings, factors[:, :, None])[:, :, 0]

    @cached_property
    def _given_complete(self) -> list[Gaussians]:
        """Each block given complete other blocks, with the mean of all records."""
        result = []
        for b in range(len(self.blocks)):
            precision = np.eye(self.n_factors) + sum(_without(self._precisions, b))
            result.append(self._spread(b, _inverses(precision)))
        return result

    def _spread(self, b: int, covariance: FloatArray) -> Gaussians:
        """Return block ``b`` with factors of this covariance (K, q, q), and the same mean."""
        gaussians, loadings = self.gaussians[b], self.loadings[:, self.blocks[b]]
        spread = _products(_products(loadings, covariance), _transposed(loadings))
        return Gaussians(gaussians.mean, gaussians.covariance() + spread)


T = TypeVar("T")


def _without(values: list[T], b: int) -> list[T]:
    """Return all values but one."""
    return values[:b] + values[b + 1 :]


def _products(A: FloatArray, B: FloatArray, **lower: bool) -> FloatArray:
    """Multiply matrices of two stacks."""
    return np.array([product(a, b, **lower) for a, b in zip(A, B, strict=True)])


def _transposed(matrices: FloatArray) -> FloatArray:
    return matrices.transpose(0, 2, 1)


def _added(found: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Add up squared distances and log-densities at distance 0 of blocks."""
    distance, norm = found[0]
    for other_distance, other_norm in found[1:]:
        distance, norm = distance + other_distance, norm + other_norm
    return distance, norm


def _total(told: list[Told], q: int) -> Told:
    """Add up what blocks say of the factors, and that these are N(0, 1)."""
    information = sum(each.information for each in told)
    precision = sum(each.precision for each in told) + np.eye(q)
    return Told(np.asarray(information), np.asarray(precision))


def _factors_of(precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return inverse Cholesky factors of matrices (n, q, q), and logarithms of determinants (n,).

    The latter are those of the inverse factors.
    """
    factor, log_norm = np.empty(precision.shape), np.empty(len(precision))
    factorise(np.ascontiguousarray(precision), factor, log_norm)
    return factor, log_norm + 0.5 * precision.shape[1] * LOG_2PI


def _inverses(precision: FloatArray) -> FloatArray:
    """Invert matrices (n, q, q)."""
    factor, _ = _factors_of(precision)
    return _products(_transposed(factor), factor, lower_right=True)


def _moments(total: Told) -> tuple[FloatArray, FloatArray]:
    """Return means (K, m, q) and covariances (K, m, q, q) of the factors."""
    K, m, q = total.information.shape
    information = total.information.reshape(K * m, q, 1)
    covariance = _inverses(total.precision.reshape(K * m, q, q))
    mean = _products(covariance, information)
    return mean.reshape(K, m, q), covariance.reshape(K, m, q, q)


def _explained(total: Told) -> tuple[FloatArray, FloatArray]:
    """Return what factors take from squared distances and add to log-densities, (K, m) each."""
    K, m, q = total.information.shape
    factor, log_root = _factors_of(total.precision.reshape(K * m, q, q))
    explained = np.empty(K * m)
    kernels.squares_of_products(factor, total.information.reshape(K * m, q), explained)
    return explained.reshape(K, m), log_root.reshape(K, m)
