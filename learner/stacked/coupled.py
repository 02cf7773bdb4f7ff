"""Gaussians of all variables that have a covariance for each block and factors in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

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
        return self.loadings.shape[2]

    def _couple(self) -> None:
        """Prepare what complete columns say of the factors."""
        K, d, q = self.loadings.shape
        self._gains = [
            np.stack([product(W, A) for W, A in zip(g.whitening, self.loadings[:, own], strict=True)])
            for own, g in zip(self.blocks, self.gaussians, strict=True)
        ]
        self._precisions = [np.stack([product(G.T, G) for G in gains]) for gains in self._gains]
        self._factor, self._log_root = _factors_of(np.eye(q) + sum(self._precisions))
        self._projection = np.zeros((K, -(-q // 4) * 4, d))
        for own, g, gains in zip(self.blocks, self.gaussians, self._gains, strict=True):
            for k in range(K):
                weighed = product(self._factor[k], gains[k].T)
                self._projection[k, :q, own] = product(weighed, g.whitening[k])

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
        distance, norm = self._in_blocks(Z)
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

    def _in_blocks(self, Z: FloatArray, without: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Sum up distances of all blocks but one, given that all factors are 0."""
        distance, norm = np.zeros((2, len(self.loadings), Z.shape[1]))
        for b, (own, gaussians) in enumerate(zip(self.blocks, self.gaussians, strict=True)):
            if b != without:
                of_block = gaussians.distances(Z[own])
                distance, norm = distance + of_block[0], norm + of_block[1]
        return distance, norm

    def _tell(self, Z: FloatArray) -> list[Told]:
        """Tell what each block of columns (d, m) says of the factors."""
        K, _, q = self.loadings.shape
        found = []
        for b, (own, gaussians) in enumerate(zip(self.blocks, self.gaussians, strict=True)):
            precision = np.repeat(self._precisions[b][:, None], Z.shape[1], axis=1)
            told = Told(np.zeros((K, Z.shape[1], q)), precision)
            kernels.tell_factors(
                Z[own], gaussians.mean, gaussians.whitening, self._gains[b], *told
            )
            found.append(told)
        return found

    def given_the_others(self, Z: FloatArray) -> Iterator[BlockGiven]:
        """Yield each block given the other variables of columns ``Z`` (d, m), column by column.

        One block that is all variables comes once, for all columns.
        """
        m, K = Z.shape[1], len(self.loadings)
        if self.n_factors == 0:
            nothing = np.zeros((2, K, m))
            yield BlockGiven(slice(0, m), self.blocks[0], self.gaussians[0], *nothing, np.zeros(m))
            return
        told, missing = self._tell(Z), np.isnan(Z)
        for b, own in enumerate(self.blocks):
            others = [each for i, each in enumerate(told) if i != b]
            total = _total(others, self.n_factors)
            explained, log_root = _explained(total)
            distance, norm = self._in_blocks(Z, without=b)
            absent = np.count_nonzero(missing, axis=0) - np.count_nonzero(missing[own], axis=0)
            rest = distance - explained, norm + log_root
            observed = len(Z) - (own.stop - own.start) - absent.astype(np.float64)
            for r in range(m):
                gaussians = self._given(b, r, total, complete=absent[r] == 0)
                yield BlockGiven(slice(r, r + 1), own, gaussians, *rest, observed)

    def _given(self, b: int, r: int, total: Told, *, complete: bool) -> Gaussians:
        """Return the Gaussians of block ``b`` given what others tell of the factors of column ``r``."""
        covariance = _inverses(total.precision[:, r])
        shape = self._given_complete[b] if complete else self._spread(b, covariance)
        own, mean = self.blocks[b], np.empty(shape.mean.shape)
        for k, loadings in enumerate(self.loadings[:, self.blocks[b]]):
            expected = product(covariance[k], total.information[k, r][:, None])
            mean[k] = self._mean[own] + product(loadings, expected)[:, 0]
        return shape.moved(mean)

    @cached_property
    def _given_complete(self) -> list[Gaussians]:
        """Each block given complete other blocks, with the mean of all records."""
        return [self._spread(b, _inverses(self._precision_without(b))) for b in range(len(self.blocks))]

    def _precision_without(self, b: int) -> FloatArray:
        others = [precision for i, precision in enumerate(self._precisions) if i != b]
        return np.asarray(np.eye(self.n_factors) + sum(others), np.float64)

    def _spread(self, b: int, covariance: FloatArray) -> Gaussians:
        """Return block ``b`` with factors of this covariance (K, q, q), and the same mean."""
        gaussians, loadings = self.gaussians[b], self.loadings[:, self.blocks[b]]
        spread = [product(product(A, C), A.T) for A, C in zip(loadings, covariance, strict=True)]
        return Gaussians(gaussians.mean, gaussians.covariance() + spread)


def _total(told: list[Told], q: int) -> Told:
    """Add up what blocks say of the factors, and that these are N(0, 1)."""
    information = sum(each.information for each in told)
    precision = sum(each.precision for each in told) + np.eye(q)
    return Told(np.asarray(information), np.asarray(precision))


def _factors_of(precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return inverse Cholesky factors of matrices (n, q, q), and the logarithms (n,) of their
    determinants."""
    factor, log_norm = np.empty(precision.shape), np.empty(len(precision))
    factorise(np.ascontiguousarray(precision), factor, log_norm)
    return factor, log_norm + 0.5 * precision.shape[1] * LOG_2PI


def _inverses(precision: FloatArray) -> FloatArray:
    """Invert matrices (K, q, q)."""
    return np.stack([product(factor.T, factor) for factor in _factors_of(precision)[0]])


def _explained(total: Told) -> tuple[FloatArray, FloatArray]:
    """Return what the factors take from squared distances, and add to log-densities, (K, m) each."""
    K, m, q = total.information.shape
    factor, log_root = _factors_of(total.precision.reshape(K * m, q, q))
    explained = np.empty(K * m)
    kernels.squares_of_products(factor, total.information.reshape(K * m, q), explained)
    return explained.reshape(K, m), log_root.reshape(K, m)
