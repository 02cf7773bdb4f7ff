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

N_BACKGROUND = N_STRENGTHS + len(WIDTHS)
"""Gaussians of the background: three strengths, and three more widths of the last."""


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
    count, sums
        Statistics: records, and their sum (d,).
    blocks, squares
        The variables of each block, and its sums of products in the lower triangle.
    gaussians
        Those of each block, one for each strength.
    """

    def __init__(self, d: int) -> None:
        self.blocks = blocks_of(d)
        self.count, self.sums = 0.0, np.zeros(d)
        sizes = [block.stop - block.start for block in self.blocks]
        self.squares = [np.zeros((size, size)) for size in sizes]
        self.gaussians: list[Gaussians] = []

    def log_densities(self, Z: FloatArray, floor: FloatArray | float = 0.0) -> FloatArray:
        """Log-densities (6, m): of each strength, then of the widths of the last."""
        parts = self.distances(Z, floor)
        distance, norm = (np.sum([part[i] for part in parts], axis=0) for i in (0, 1))
        observed = np.count_nonzero(~np.isnan(Z), axis=0)
        widths = WIDTHS[:, None]
        wide = norm[-1] - observed * np.log(widths) - 0.5 * distance[-1] / widths**2
        return np.concatenate([norm - 0.5 * distance, wide])

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
        """Add the columns of ``Z`` (d, m), of which missing values count as the mean."""
        mean = self.sums / self.count if self.count > 0 else means(Z)
        X = np.where(np.isnan(Z), mean[:, None], Z)
        self.count = self.count * kept + X.shape[1]
        self.sums *= kept
        for block, squares in zip(self.blocks, self.squares, strict=True):
            squares *= kept
            kernels.add_squares(X[block], self.sums[block], squares)
        self.update()

    def update(self) -> None:
        """Set the parameters that the statistics give."""
        self.gaussians = [
            _shrunk(self.count, self.sums[block], squares)
            for block, squares in zip(self.blocks, self.squares, strict=True)
        ]


def _shrunk(count: float, sums: FloatArray, squares: FloatArray) -> Gaussians:
    """Gaussians of each strength, with covariances of which the lower triangles are right."""
    d, mean = len(sums), sums / count
    w = np.array([*STRENGTHS, d + 2.0])[:, None, None]
    scatter = squares - count * np.outer(mean, mean)
    variance = np.diag(np.diag(scatter) / count + LEAST_VARIANCE)
    covariance = (scatter + w * variance) / (count + w) + LEAST_VARIANCE * np.eye(d)
    return Gaussians(np.tile(mean, (len(w), 1)), covariance)
