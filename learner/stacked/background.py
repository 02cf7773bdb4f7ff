"""One Gaussian over the whole stream.

Where one covariance would not fit, fields are divided into blocks with a covariance each, and a few
factors drive the fields of all blocks: a covariance in blocks plus one of low rank.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from . import gaussian_kernels as kernels
from .coupled import CoupledGaussians
from .factors import SWEEPS, Factors, first_loadings, inverse_factor, n_factors, product
from .gaussians import Gaussians, excess, means
from .leaves import LEAST_VARIANCE

FloatArray = NDArray[np.float64]

WIDEST = 256
"""Most variables of one covariance: time and memory of a variable grow with their number."""

STRENGTHS = 0.3, 3.0
"""Strengths of shrinkage, in records; the strongest one grows with the block."""

N_STRENGTHS = len(STRENGTHS) + 1

WIDTHS = np.array([3.0, 15.0, 150.0])
"""Deviations of the wider Gaussians, as multiples of those of the most strongly shrunk one."""

LOG_WIDTHS = np.log(WIDTHS)

N_BACKGROUND = N_STRENGTHS + len(WIDTHS)
"""Gaussians of the background: three strengths, and three more widths of the last."""

RIDGE = 1e-6
"""Added to the variances of factors, so that those which no record tells apart stay apart."""

LEAST_NEWS = 1 / 16
"""Share of the known records that fresh ones need to be, so that the Gaussians change."""


def blocks_of(d: int) -> list[slice]:
    """Divide ``d`` variables into as few blocks of neighbours as fit, as equal as possible."""
    n = -(-d // WIDEST)
    bounds = [d * i // n for i in range(n + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]


class Background:
    """One Gaussian over the whole stream, at several strengths of shrinkage and several widths.

    Its covariance is drawn to its diagonal. The most strongly drawn one comes at wider scales,
    too, which have the same Mahalanobis distances and so cost nothing. More than 256 variables
    are divided into blocks. The covariance of a block is its own, that between blocks comes of
    factors that they share.

    Attributes
    ----------
    blocks
        The variables of each block.
    known, fresh
        Moments that the Gaussians are made of, and those of the records since.
    kept
        What is left of the weight of the known ones.
    standing
        The strength that stands for each one (3,): itself, unless another is as good.
    factors
        What blocks share, as new records are told about it; None where there is one block.
    """

    factors: Factors | None = None
    _distinct: CoupledGaussians
    _places: NDArray[np.int64]

    def __init__(self, d: int, q: int = 0) -> None:
        self.blocks = blocks_of(d)
        self.known, self.fresh, self.kept = Moments(self.blocks, q), Moments(self.blocks, q), 1.0
        self.standing = np.arange(N_STRENGTHS)

    @cached_property
    def gaussians(self) -> CoupledGaussians:
        """One for each strength."""
        return self._distinct.part(self._places)

    def experts_of(self, strength: int) -> NDArray[np.int64]:
        """Which of the six Gaussians are of one strength, or of one that it stands for."""
        widest = np.repeat(self.standing[-1:], len(WIDTHS))
        return np.flatnonzero(np.concatenate([self.standing, widest]) == strength)

    def log_densities(self, Z: FloatArray, floor: FloatArray | float = 0.0) -> FloatArray:
        """Log-densities (6, m): of each strength, then of the widths of the last."""
        distance, norm = self.distances(Z, floor)
        observed = np.count_nonzero(Z == Z, axis=0)
        result = np.empty((N_BACKGROUND, Z.shape[1]))
        kernels.at_widths(distance, norm, observed, WIDTHS, LOG_WIDTHS, result)
        return result

    def distances(
        self, Z: FloatArray, floor: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Squared distances and log-densities at distance 0, (3, m) each."""
        raised = excess(floor).any()
        gaussians = self._distinct.with_floor(floor) if raised else self._distinct
        distance, norm = gaussians.distances(Z)
        return distance[self._places], norm[self._places]

    def learn(self, Z: FloatArray, kept: float) -> None:
        """Add the columns of ``Z`` (d, m), of which missing values count as the mean.

        The Gaussians change when the fresh records have become a sixteenth of the known ones.
        """
        if self.take_in(Z, kept):
            self.change()

    def take_in(self, Z: FloatArray, kept: float) -> bool:
        """Add the columns of ``Z`` (d, m); say if the Gaussians have to change."""
        first = self.known.count == 0
        mean = means(Z) if first else self.known.mean
        X = np.where(np.isnan(Z), mean[:, None], Z)
        if first:
            self._learn_first(X)
            return False
        self.kept *= kept
        self.fresh.fade(kept)
        self.fresh.add_values(self.blocks, X)
        if self.factors is not None:
            self.fresh.add_factors(X, self.factors)
        return self.fresh.count >= LEAST_NEWS * self.known.count * self.kept

    def change(self) -> None:
        """Let the Gaussians be those of all records, of the fresh ones, too."""
        self.known.fade(self.kept)
        self.known.merge(self.fresh)
        self.known.standardise_factors()
        self.fresh, self.kept = Moments(self.blocks, self.known.n_factors), 1.0
        self.update()

    def _learn_first(self, X: FloatArray) -> None:
        """Learn the first columns (d, m): all of them again in each step of EM for the factors."""
        q = n_factors(X.shape[1]) if len(self.blocks) > 1 else 0
        loadings = first_loadings(X, q)
        self.known, self.fresh = Moments(self.blocks, q), Moments(self.blocks, q)
        self.known.add_values(self.blocks, X)
        for _ in range(SWEEPS if q > 0 else 0):
            factors = Factors(self.known.mean, self.known.variance, loadings)
            self.known.clear_factors()
            self.known.add_factors(X, factors)
            self.known.standardise_factors()
            loadings = self.known.loadings
        self.update()

    def update(self) -> None:
        """Set the parameters that the statistics give."""
        known, loadings = self.known, self.known.loadings
        distinct, self._places = np.unique(self.standing, return_inverse=True)
        self._distinct = coupled(known, loadings, self.blocks, distinct)
        self.__dict__.pop("gaussians", None)
        if known.n_factors > 0:
            self.factors = Factors(known.mean, known.variance, loadings)


class Moments:
    """Moments of records: how many there are, their sum (d,), and sums of products by block.

    The latter are lower triangles (size, size). Beside them there are sums of what is expected of
    the factors (q,), of products of variables with them (d, q), and of their products (q, q).
    """

    def __init__(self, blocks: list[slice], q: int) -> None:
        d = blocks[-1].stop
        self.count, self.sums = 0.0, np.zeros(d)
        self.squares = [np.zeros((block.stop - block.start,) * 2) for block in blocks]
        self.factor_sums, self.factor_squares = np.zeros(q), np.zeros((q, q))
        self.factor_products = np.zeros((d, q))

    @property
    def n_factors(self) -> int:
        """Number q of factors."""
        return len(self.factor_sums)

    @property
    def mean(self) -> FloatArray:
        """Mean (d,)."""
        return self.sums / self.count

    @property
    def variance(self) -> FloatArray:
        """Variances (d,)."""
        squares = np.concatenate([np.diagonal(block) for block in self.squares])
        return np.maximum(squares / self.count - self.mean**2, 0.0)

    @property
    def loadings(self) -> FloatArray:
        """Loadings (d, q) of the factors, which are standardised."""
        centre = self.factor_sums / self.count
        return self.factor_products / self.count - np.multiply.outer(self.mean, centre)

    def fade(self, kept: float) -> None:
        """Let all records so far count ``kept`` times."""
        self.count *= kept
        for values in (*self._of_values, *self._of_factors):
            values *= kept

    def add_values(self, blocks: list[slice], Z: FloatArray) -> None:
        """Add the columns of ``Z`` (d, m), which lack no value."""
        self.count += Z.shape[1]
        for block, squares in zip(blocks, self.squares, strict=True):
            kernels.add_squares(Z[block], self.sums[block], squares)

    def add_factors(self, Z: FloatArray, factors: Factors) -> None:
        """Add what is expected of the factors by columns (d, m)."""
        expected = factors.expected(Z)
        each = np.ascontiguousarray(expected.T)
        self.factor_sums += product(np.ones((1, len(each))), each)[0]
        self.factor_products += product(Z, each)
        self.factor_squares += product(expected, each) + len(each) * factors.covariance

    def clear_factors(self) -> None:
        """Forget the factors."""
        for values in self._of_factors:
            values[:] = 0.0

    def standardise_factors(self) -> None:
        """Take combinations of the factors that have covariance 1 (Liu, Rubin and Wu 1998).

        The moments of a variable and its covariances within its block stay what they are: factors
        explain parts of them.
        """
        if self.n_factors == 0:
            return
        centre = self.factor_sums / self.count
        covariance = self.factor_squares / self.count - np.outer(centre, centre)
        whitening = inverse_factor(covariance + RIDGE * np.eye(self.n_factors))
        self.factor_sums = product(whitening, self.factor_sums[:, None])[:, 0]
        self.factor_products = product(self.factor_products, whitening.T)
        self.factor_squares = product(product(whitening, self.factor_squares), whitening.T)

    def merge(self, others: Moments) -> None:
        """Add other records, which know the same factors."""
        self.merge_values(others)
        for own, values in zip(self._of_factors, others._of_factors, strict=True):
            own += values

    def merge_values(self, others: Moments) -> None:
        """Add other records without what they say of factors."""
        self.count += others.count
        for own, values in zip(self._of_values, others._of_values, strict=True):
            own += values

    @property
    def _of_values(self) -> tuple[FloatArray, ...]:
        return self.sums, *self.squares

    @property
    def _of_factors(self) -> tuple[FloatArray, ...]:
        return self.factor_sums, self.factor_products, self.factor_squares


def coupled(
    known: Moments, loadings: FloatArray, blocks: list[slice], which: NDArray[np.int64]
) -> CoupledGaussians:
    """Gaussians of some strengths, of which factors with ``loadings`` (d, q) explain a part."""
    gaussians, drawn = [], np.empty((len(which), *loadings.shape))
    for block, squares in zip(blocks, known.squares, strict=True):
        strengths = np.array([*STRENGTHS, len(squares) + 2.0])[which]
        sums, explained = known.sums[block], np.zeros(squares.shape)
        kernels.add_squares(np.sqrt(known.count) * loadings[block], np.zeros(len(sums)), explained)
        covariance = np.zeros((len(which), *squares.shape))
        kernels.shrink(known.count, sums, squares, explained, strengths, LEAST_VARIANCE, covariance)
        left = known.count / (known.count + strengths)
        drawn[:, block] = np.sqrt(left)[:, None, None] * loadings[block]
        mean = np.tile(sums / known.count, (len(which), 1))
        gaussians.append(Gaussians(mean, covariance))
    return CoupledGaussians(blocks, gaussians, drawn)
