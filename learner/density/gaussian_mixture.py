"""A mixture of Gaussians with full covariances."""

from __future__ import annotations

from collections.abc import Container
from copy import copy
from typing import Self

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.state_schema import Entry, expect, read
from faust_oslrau.learner.stored import Places

from . import gaussian_kernels as kernels
from . import missing_kernels
from .gaussians import Gaussians
from .mixtures import mix

WEIGHT_PRIOR = 0.5
"""Records' worth added to each component."""

LEAST_SHARE = 1e-3
"""Shares of a record below this are not learned: leaving out larger ones costs likelihood."""

LEAST_COUNT = 1e-6
"""Records below which a component keeps its mean."""

SHRINKAGE = 4.0
"""Records' worth, unless a mixture has its own."""

ROWS_BESIDE_FIELDS = 8
"""A component needs as many records as there are fields, and so many more."""

SWEEPS = 8
"""Rounds of expectation-maximisation at the beginning. With four, groups of anomalies rank lower;
more of them overfit."""

FARTHEST = 30.0
"""Usual deviations at which values are cut off for the Gaussians of a density."""

_SCHEMA = {
    "count": Entry(("K",), 0.0),
    "mean": Entry(("K", "d")),
    "sums": Entry(("K", "d")),
    "squares": Entry(("K", "w")),
}


class GaussianMixture:
    """A mixture of full-covariance Gaussians, drawn to their common shape.

    Attributes
    ----------
    weight
        Weights of the components (K,).
    gaussians
        Their parameters.
    count, sums, squares
        Statistics: records of each component (K,), sums (K, d), sums of products (K, d, d) in
        lower triangles.
    shrinkage
        Records' worth by which covariances are drawn to the pooled one.
    """

    def __init__(self, n_components: int, d: int, shrinkage: float = SHRINKAGE) -> None:
        self.shrinkage = shrinkage
        self.count, self.sums = np.zeros(n_components), np.zeros((n_components, d))
        self.squares = np.zeros((n_components, d, d))
        identity = np.tile(np.eye(d), (n_components, 1, 1))
        self.weight = np.full(n_components, 1.0 / max(n_components, 1))
        self.gaussians = Gaussians(np.zeros((n_components, d)), identity)

    @classmethod
    def of_seeds(
        cls,
        Z: FloatArray,
        n_components: int,
        rng: np.random.Generator,
        shrinkage: float = SHRINKAGE,
    ) -> Self:
        """Begin with clusters around columns of ``Z`` (d, m), by the seeding of k-means++."""
        mixture = cls(n_components, len(Z), shrinkage)
        X = np.where(np.isnan(Z), means(Z)[:, None], Z)
        shares = np.zeros((X.shape[1], n_components))
        shares[np.arange(len(shares)), _far_apart(X.T, n_components, rng)[1]] = 1.0
        mixture.learn(Z, shares, 0.0)  # missing values as those of N(0, I)
        return mixture

    @classmethod
    def of_wide_components(
        cls, Z: FloatArray, n_components: int, rng: np.random.Generator, shrinkage: float
    ) -> Self:
        """Begin with wide Gaussians at such columns of standardised ``Z`` (d, m), not learned."""
        d, K = len(Z), n_components
        mixture, X = cls(K, d, shrinkage), np.where(np.isnan(Z), means(Z)[:, None], Z).T
        wide = np.tile(np.eye(d) / np.sqrt(K), (K, 1, 1))
        mixture.gaussians = Gaussians(X[_far_apart(X, K, rng)[0]], wide)
        return mixture

    def log_density(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log-density (m,) and the components' shares (m, K)."""
        distance, norm = self.gaussians.distances(Z)
        result, shares = np.empty(Z.shape[1]), np.empty((Z.shape[1], len(self.weight)))
        mix(distance, norm, np.log(self.weight), result, shares)
        return result, shares

    def fit(self, Z: FloatArray) -> Self:
        """Learn the columns of ``Z`` (d, m) from the start; return the mixture itself."""
        for _ in range(SWEEPS):
            self.learn(Z, self.log_density(Z)[1], 0.0)
        return self

    def learn(self, Z: FloatArray, shares: FloatArray, kept: FloatArray | float) -> None:
        """Add the statistics of the columns of ``Z`` (d, m) by the ``shares`` (m, K) of each.

        The earlier ones count ``kept`` times, for each component (K,) or for all.
        """
        own, before = np.broadcast_to(kept, self.count.shape), copy(self)
        absent = np.asarray(np.isnan(Z).all(axis=1))
        self.count = self.count * own + shares.sum(axis=0)
        self.sums, self.squares = self.sums * own[:, None], self.squares * own[:, None, None]
        gaussians = self.gaussians
        missing_kernels.add_moments(
            Z, shares, LEAST_SHARE, gaussians.mean, gaussians.whitening, self.sums, self.squares
        )
        if absent.any():
            self._keep(before, absent)
        self.update()

    def _keep(self, before: GaussianMixture, variables: Mask) -> None:
        """Let variables (d,) have the means and covariances that they had, if they had some.

        Of variables that no record has, what is expected would be learned. As covariances are
        widened for new records, they would grow without end.
        """
        known = (before.count > LEAST_COUNT)[:, None]
        n, m = (np.maximum(each.count, LEAST_COUNT)[:, None] for each in (before, self))
        old = before.sums / n
        self.sums = np.where(known & variables, m * old, self.sums)
        new, own = self.sums / m, known[..., None] & (variables[:, None] | variables)
        centred = before.squares / n[..., None] - old[:, :, None] * old[:, None]
        moved = m[..., None] * (centred + new[:, :, None] * new[:, None])
        self.squares = np.where(own, np.tril(moved), self.squares)

    def update(self) -> None:
        """Set the parameters that the statistics give."""
        n, K = self.count.sum(), len(self.count)
        self.weight = (self.count + WEIGHT_PRIOR) / (n + WEIGHT_PRIOR * K)
        mean = self.sums / np.maximum(self.count, LEAST_COUNT)[:, None]
        mean = np.where(self.count[:, None] > LEAST_COUNT, mean, self.gaussians.mean)
        self.gaussians = Gaussians(mean, self.covariances(mean))

    def covariances(self, mean: FloatArray) -> FloatArray:
        """Return lower triangles (K, d, d) of the covariances that the statistics give."""
        covariance = np.zeros_like(self.squares)
        kernels.shrink_to_pooled(self.count, mean, self.squares, self.shrinkage, covariance)
        return covariance

    def together(self) -> GaussianMixture:
        """Return the mixture with all its components as a single one."""
        mixture = GaussianMixture(1, self.sums.shape[1])
        mixture.count, mixture.sums = self.count.sum(keepdims=True), self.sums.sum(0, keepdims=True)
        mixture.squares = self.squares.sum(axis=0, keepdims=True)
        mixture.update()
        return mixture

    def add_fields(self, places: Places) -> None:
        """Add variables with mean 0 and variance 1, independent of the others."""
        self.gaussians.mean = places.widened(self.gaussians.mean, 1, 0.0)
        self.sums = places.widened(self.sums, 1, 0.0)
        self.squares = places.widened(places.widened(self.squares, 1, 0.0), 2, 0.0)
        self.squares[:, places.new, places.new] = self.count[:, None]
        self.update()

    def state(self, prefix: str) -> Arrays:
        """Return the arrays that ``of_state`` needs; their names begin with ``prefix``."""
        i, j = np.tril_indices(self.sums.shape[1])
        arrays = self.count, self.gaussians.mean, self.sums, self.squares[:, i, j]
        return {prefix + name: array for name, array in zip(_SCHEMA, arrays, strict=True)}

    @classmethod
    def of_state(
        cls,
        arrays: Arrays,
        prefix: str,
        d: int,
        shrinkage: float = SHRINKAGE,
        **sizes: Container[int],
    ) -> Self:
        """Return the mixture of a state of ``d`` variables; ``K`` may be one of some ``sizes``.

        StateError if the arrays cannot be those of a mixture.
        """
        sizes |= {"d": (d,), "w": (d * (d + 1) // 2,)}
        count, mean, sums, squares = read(arrays, _SCHEMA, prefix, **sizes)
        mixture, (i, j) = cls(len(count), d, shrinkage), np.tril_indices(d)
        if len(count) == 0:
            return mixture
        expect(0.0 < count.sum() < np.inf, f"{prefix}count of records")
        mixture.count, mixture.sums, mixture.gaussians.mean = count, sums, mean
        mixture.squares[:, i, j] = squares
        mixture.update()
        found = mixture.gaussians
        parameters = (mixture.weight, found.mean, found.whitening, found.log_norm)
        is_sound = all(np.isfinite(array).all() for array in parameters)
        expect(is_sound, f"{prefix}squares of Gaussians")
        return mixture


def enough_components(m: int, d: int, most: int) -> int:
    """Return how many components ``m`` records of ``d`` fields are enough for: 1 to ``most``."""
    return max(1, min(most, m // (d + ROWS_BESIDE_FIELDS)))


def means(Z: FloatArray) -> FloatArray:
    """Return means (d,) of what is observed in the columns of ``Z`` (d, m), 0 where nothing is."""
    observed = ~np.isnan(Z)
    total = np.where(observed, Z, 0.0).sum(axis=1)
    return np.asarray(total / np.maximum(observed.sum(axis=1), 1), np.float64)


def _far_apart(X: FloatArray, K: int, rng: np.random.Generator) -> tuple[list[int], IntArray]:
    """Draw ``K`` rows of ``X`` (m, d), each by its squared distance from those before it.

    Returns their numbers, and which of them is the nearest one of each row (m,).
    """
    farthest = 25.0 * X.shape[1]
    chosen = [int(rng.integers(len(X)))]
    distance = ((X - X[chosen[0]]) ** 2).sum(axis=1)
    nearest, near = np.zeros(len(X), np.int64), np.minimum(distance, farthest)
    for k in range(1, K):
        share = near / near.sum() if near.sum() > 0 else None
        chosen.append(int(rng.choice(len(X), p=share)))
        other = ((X - X[chosen[-1]]) ** 2).sum(axis=1)
        nearest = np.where(other < distance, k, nearest)
        distance, near = np.minimum(distance, other), np.minimum(near, other)
    return chosen, nearest
