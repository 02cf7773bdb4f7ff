"""One Gaussian over the whole stream, at several widths.

Where one covariance would not fit, fields are divided into blocks with a covariance each.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.density import gaussian_kernels as kernels
from faust_oslrau.learner.density.gaussian_kernels import LEAST_VARIANCE
from faust_oslrau.learner.density.gaussian_mixture import means
from faust_oslrau.learner.density.gaussians import Gaussians, excess

WIDEST = 512
"""Most variables of one covariance: time and memory of a variable grow with their number."""

WIDTHS = np.array([1.0, 3.0, 15.0, 150.0])
"""Deviations of the Gaussians, as multiples of those of the covariance."""

LOG_WIDTHS = np.log(WIDTHS)

N_BACKGROUND = len(WIDTHS)

SHRINKAGE = 10.0
"""Records' worth by which a covariance is drawn to its diagonal."""

LEAST_NEWS = 1 / 16
"""Share of the known records that fresh ones need to be, so that the Gaussians change."""


def blocks_of(d: int) -> list[slice]:
    """Divide ``d`` variables into as few blocks of neighbours as fit, as equal as possible."""
    n = -(-d // WIDEST)
    bounds = [d * i // n for i in range(n + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]


class Background:
    """One Gaussian over the whole stream, at several widths.

    Its covariance is drawn to its diagonal. Wider Gaussians have the same Mahalanobis distances and
    so cost nothing. More than 512 variables are divided into blocks, which are independent.

    Attributes
    ----------
    blocks
        The variables of each block.
    known, fresh
        Moments that the Gaussian is made of, and those of the records since.
    kept
        What is left of the weight of the known ones.
    gaussians
        The Gaussian of each block.
    """

    gaussians: list[Gaussians]

    def __init__(self, d: int) -> None:
        self.blocks = blocks_of(d)
        self.known, self.fresh, self.kept = Moments(self.blocks), Moments(self.blocks), 1.0

    @property
    def mean(self) -> FloatArray:
        """Mean (d,)."""
        return np.concatenate([gaussians.mean[0] for gaussians in self.gaussians])

    @property
    def covariance(self) -> FloatArray:
        """Covariance (d, d)."""
        d = self.blocks[-1].stop
        result = np.zeros((d, d))
        for own, gaussians in zip(self.blocks, self.gaussians, strict=True):
            result[own, own] = gaussians.covariance()[0]
        return result

    def log_densities(self, Z: FloatArray, floor: FloatArray | float = 0.0) -> FloatArray:
        """Log-densities (widths, m) of the columns of ``Z`` (d, m)."""
        distance, norm = self.distances(Z, floor)
        observed = np.count_nonzero(Z == Z, axis=0)
        return _at_widths(distance, norm, observed)

    def distances(
        self, Z: FloatArray, floor: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Squared distances and log-densities at distance 0, (m,) each."""
        distance, norm = np.sum(self.distances_of_blocks(Z, floor), axis=0)
        return distance, norm

    def distances_of_blocks(self, Z: FloatArray, floor: FloatArray | float = 0.0) -> FloatArray:
        """Do the same for each block (blocks, 2, m)."""
        raised = bool(excess(floor).any())
        floors = np.broadcast_to(floor, len(Z))
        result = np.empty((len(self.blocks), 2, Z.shape[1]))
        for b, (own, gaussians) in enumerate(zip(self.blocks, self.gaussians, strict=True)):
            used = gaussians.with_floor(floors[own]) if raised else gaussians
            distance, norm = used.distances(Z[own])
            result[b] = distance[0], norm[0]
        return result

    def given_others(self, Z: FloatArray) -> FloatArray:
        """Return what `mix_given_others` takes of each width, (3, widths, d, m)."""
        each, observed = self.distances_of_blocks(Z), ~np.isnan(Z)
        told = np.empty((4, *Z.shape))
        for b, (own, gaussians) in enumerate(zip(self.blocks, self.gaussians, strict=True)):
            told[:, own] = gaussians.tell(np.ascontiguousarray(Z[own]))[:, 0]
            told[:2, own] += np.delete(each, b, axis=0).sum(axis=0)[:, None]
        (distance, norm, *moments), n = told, observed.sum(axis=0) - observed
        others = _at_widths(distance, norm, n)
        mean, variance = (np.broadcast_to(moment, others.shape) for moment in moments)
        return np.stack([others, mean, np.sqrt(variance)])

    def learn(self, Z: FloatArray, kept: float) -> None:
        """Add the columns of ``Z`` (d, m), of which missing values count as the mean.

        The Gaussian changes when the fresh records have become a sixteenth of the known ones.
        """
        first = self.known.count == 0
        mean = means(Z) if first else self.known.mean
        X = np.where(np.isnan(Z), mean[:, None], Z)
        if first:
            self.known.add(self.blocks, X)
            self.update()
            return
        self.kept *= kept
        self.fresh.fade(kept)
        self.fresh.add(self.blocks, X)
        if self.fresh.count >= LEAST_NEWS * self.known.count * self.kept:
            self.known = self.all_moments()
            self.fresh, self.kept = Moments(self.blocks), 1.0
            self.update()

    def all_moments(self) -> Moments:
        """Return the moments of all records, of the fresh ones, too."""
        moments = Moments(self.blocks)
        moments.merge(self.known)
        moments.fade(self.kept)
        moments.merge(self.fresh)
        return moments

    def update(self) -> None:
        """Set the parameters that the statistics give."""
        known, self.gaussians = self.known, []
        for own, squares in zip(self.blocks, known.squares, strict=True):
            sums = known.sums[own]
            covariance = _shrunk(known.count, sums, squares)
            self.gaussians.append(Gaussians(sums[None] / known.count, covariance[None]))


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


def _at_widths(distance: FloatArray, norm: FloatArray, observed: IntArray) -> FloatArray:
    """Return log-densities (widths, ...) of a Gaussian at each width, by those at distance 0."""
    shape = (-1, *(1,) * norm.ndim)
    width, log_width = WIDTHS.reshape(shape), LOG_WIDTHS.reshape(shape)
    return np.asarray(norm - observed * log_width - 0.5 * distance / width**2)


def _shrunk(count: float, sums: FloatArray, squares: FloatArray) -> FloatArray:
    """Return a covariance (d, d), its lower triangle, drawn to the diagonal."""
    scale = 1.0 / (count + SHRINKAGE)
    around = np.tril(squares - np.multiply.outer(sums / count, sums))
    variance = np.diagonal(around) / count + LEAST_VARIANCE
    covariance = around * scale
    np.einsum("ii->i", covariance)[:] += SHRINKAGE * variance * scale + LEAST_VARIANCE
    return covariance
