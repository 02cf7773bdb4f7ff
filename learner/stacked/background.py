"""One Gaussian over the whole stream, in blocks of fields where one covariance would not fit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from . import gaussian_kernels as kernels
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
    are divided into blocks, independent of each other.

    Attributes
    ----------
    blocks
        The variables of each block.
    known, fresh
        Moments that the Gaussians are made of, and those of the records since.
    kept
        What is left of the weight of the known ones.
    gaussians
        Those of each block, one for each strength.
    """

    def __init__(self, d: int) -> None:
        self.blocks = blocks_of(d)
        self.known, self.fresh, self.kept = Moments(self.blocks), Moments(self.blocks), 1.0
        self.gaussians: list[Gaussians] = []

    def log_densities(self, Z: FloatArray, floor: FloatArray | float = 0.0) -> FloatArray:
        """Log-densities (6, m): of each strength, then of the widths of the last."""
        parts = self.distances(Z, floor)
        distance, norm = parts[0]
        for other_distance, other_norm in parts[1:]:
            distance, norm = distance + other_distance, norm + other_norm
        observed = np.count_nonzero(Z == Z, axis=0)
        result = np.empty((N_BACKGROUND, Z.shape[1]))
        kernels.at_widths(distance, norm, observed, WIDTHS, LOG_WIDTHS, result)
        return result

    def distances(
        self, Z: FloatArray, floor: FloatArray | float = 0.0
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Squared distances and log-densities at distance 0, (3, m) each, of each block."""
        raised, floors = excess(floor).any(), np.broadcast_to(floor, len(Z))
        return [
            (gaussians.with_floor(floors[block]) if raised else gaussians).distances(Z[block])
            for block, gaussians in zip(self.blocks, self.gaussians, strict=True)
        ]

    def learn(self, Z: FloatArray, kept: float) -> None:
        """Add the columns of ``Z`` (d, m), of which missing values count as the mean.

        The Gaussians change when the fresh records have become a sixteenth of the known ones.
        """
        mean = self.known.mean if self.known.count > 0 else means(Z)
        self.kept *= kept
        self.fresh.fade(kept)
        self.fresh.add(self.blocks, np.where(np.isnan(Z), mean[:, None], Z))
        if self.fresh.count >= LEAST_NEWS * self.known.count * self.kept:
            self.known.fade(self.kept)
            self.known.merge(self.fresh)
            self.fresh, self.kept = Moments(self.blocks), 1.0
            self.update()

    def update(self) -> None:
        """Set the parameters that the statistics give."""
        known = self.known
        self.gaussians = [
            _shrunk(known.count, known.sums[block], squares)
            for block, squares in zip(self.blocks, known.squares, strict=True)
        ]


class Moments:
    """Moments of records: how many there are, their sum (d,), and sums of products by block.

    The latter are lower triangles (size, size).
    """

    def __init__(self, blocks: list[slice]) -> None:
        self.count, self.sums = 0.0, np.zeros(blocks[-1].stop)
        self.squares = [np.zeros((block.stop - block.start,) * 2) for block in blocks]

    @property
    def mean(self) -> FloatArray:
        """Mean (d,)."""
        return self.sums / self.count

    def fade(self, kept: float) -> None:
        """Let all records so far count ``kept`` times."""
        self.count *= kept
        for values in (self.sums, *self.squares):
            values *= kept

    def add(self, blocks: list[slice], Z: FloatArray) -> None:
        """Add the columns of ``Z`` (d, m), which lack no value."""
        self.count += Z.shape[1]
        for block, squares in zip(blocks, self.squares, strict=True):
            kernels.add_squares(Z[block], self.sums[block], squares)

    def merge(self, others: Moments) -> None:
        """Add other records."""
        self.count += others.count
        self.sums += others.sums
        for own, squares in zip(self.squares, others.squares, strict=True):
            own += squares


def _shrunk(count: float, sums: FloatArray, squares: FloatArray) -> Gaussians:
    """Gaussians of each strength."""
    d = len(sums)
    strengths = np.array([*STRENGTHS, d + 2.0])
    covariance = np.zeros((len(strengths), d, d))
    kernels.shrink(count, sums, squares, strengths, LEAST_VARIANCE, covariance)
    return Gaussians(np.tile(sums / count, (len(strengths), 1)), covariance)
