"""Gaussians with full covariances, and a mixture of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import gaussian_kernels as kernels
from . import missing_kernels
from .leaves import LEAST_VARIANCE
from .mixing import log_sums_of_rows, mix
from .predictive_kernels import condition_each

FloatArray = NDArray[np.float64]

WEIGHT_PRIOR = 0.5
"""Records' worth added to each component."""

LEAST_SHARE = 1e-3
"""Shares of a record below this are not learned: leaving out larger ones costs likelihood."""

LEAST_COUNT = 1e-6
"""Records below which a component keeps its mean."""

FIRST_SHRINKAGE = 4.0
"""Until new records have voted."""

LOWEST = 50.0
"""Nats for each variable by which one record at most counts against a shrinkage."""

FADING = 0.5
"""Share of the votes for shrinkages that is left after a batch."""


class Given(NamedTuple):
    """Gaussians of some variables given the others.

    Attributes
    ----------
    gain
        What their means gain by each deviation of an observed variable (K, missing, observed).
    deviation
        Their deviations (K, missing).
    """

    gain: FloatArray
    deviation: FloatArray


class Gaussians:
    """Gaussians of the same variables: ``mean`` (K, d), and ``whitening`` (K, d, d)."""

    def __init__(self, mean: FloatArray, covariance: FloatArray) -> None:
        """Take means, and covariances of which the lower triangles are looked at."""
        self.mean = mean
        self._marginals: dict[int, Gaussians] = {}
        self._given: dict[int, Given] = {}
        self.whitening, self.log_norm = np.empty_like(covariance), np.empty(len(mean))
        kernels.factorise(covariance, self.whitening, self.log_norm)

    def part(self, which: slice | NDArray[np.int64]) -> Gaussians:
        """Return some of the Gaussians."""
        part = Gaussians.__new__(Gaussians)
        part._marginals, part._given = {}, {}
        part.mean, part.whitening = self.mean[which], self.whitening[which]
        part.log_norm = self.log_norm[which]
        return part

    def with_floor(self, floor: FloatArray | float) -> Gaussians:
        """Add to the variances what the least one is short of a floor, for each variable (d,)."""
        d = self.mean.shape[1]
        return Gaussians(self.mean, self.covariance() + np.eye(d) * excess(floor))

    def covariance(self) -> FloatArray:
        """Covariances (K, d, d)."""
        factor = np.linalg.inv(self.whitening)
        return np.asarray(factor @ factor.transpose(0, 2, 1), np.float64)

    def distances(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Squared distances and log-densities at distance 0, (K, m) each, of what is observed."""
        first = lacked_by_all(Z)
        if first > 0:
            return self._marginal(first).distances(np.ascontiguousarray(Z[first:]))
        distance, norm = np.empty((2, len(self.mean), Z.shape[1]))
        kernels.distances(Z, self.mean, self.whitening, self.log_norm, distance, norm)
        incomplete = np.flatnonzero(distance[0] < 0.0)
        if len(incomplete) > 0:
            self._measure_incomplete(Z, incomplete, distance, norm)
        return distance, norm

    def _measure_incomplete(
        self, Z: FloatArray, columns: NDArray[np.int64], distance: FloatArray, norm: FloatArray
    ) -> None:
        """Fill in what is said of incomplete columns.

        Those that lack the first variables and no other, as the past of a widened row does, need
        the Gaussians of the other variables only. Nothing is said of those that lack all.
        """
        lacking = first_missing(Z[:, columns])
        for first in np.unique(lacking).tolist():
            some = columns[lacking == first]
            if first == len(Z):
                distance[:, some], norm[:, some] = 0.0, 0.0
            elif first > 0:
                marginal = self._marginal(first)
                rest = np.ascontiguousarray(Z[first:, some])
                distance[:, some], norm[:, some] = marginal.distances(rest)
            else:
                missing_kernels.incomplete_distances(
                    Z, some, self.mean, self.whitening, self.log_norm, distance, norm
                )

    def _marginal(self, first: int) -> Gaussians:
        """Return the Gaussians of the variables from ``first`` on."""
        if first not in self._marginals:
            K, d = self.mean.shape
            covariance = np.zeros((K, d - first, d - first))
            missing_kernels.covariance_of_last(self.whitening, first, covariance)
            mean = np.ascontiguousarray(self.mean[:, first:])
            self._marginals[first] = Gaussians(mean, covariance)
        return self._marginals[first]

    def given(self, missing: NDArray[np.bool_]) -> Given:
        """Return the Gaussians of the ``missing`` variables (d,) given the others.

        Where these are the first ones, as in a record that is foreseen, they are worked out once.
        """
        first = int(np.count_nonzero(missing))
        if not missing[:first].all():
            return self._worked_out(missing)
        if first not in self._given:
            self._given[first] = self._worked_out(missing)
        return self._given[first]

    def _worked_out(self, missing: NDArray[np.bool_]) -> Given:
        (K, d), n = self.mean.shape, int(np.count_nonzero(missing))
        given = Given(np.empty((K, n, d - n)), np.empty((K, n)))
        condition_each(self.whitening, missing, *given)
        return given


def first_missing(Z: FloatArray) -> NDArray[np.int64]:
    """Return how many values each column (d, m) lacks if these are its first ones, else 0."""
    missing = np.isnan(Z)
    n = np.count_nonzero(missing, axis=0)
    is_first = (missing == (np.arange(len(Z))[:, None] < n)).all(axis=0)
    return np.where(is_first, n, 0)


def lacked_by_all(Z: FloatArray) -> int:
    """Return how many values all columns (d, m) lack if these are their first ones, else 0."""
    if Z.shape[1] == 0 or not np.isnan(Z[0]).all():
        return 0
    n = first_missing(Z)
    return int(n[0]) if n[0] < len(Z) and (n == n[0]).all() else 0


def excess(floor: FloatArray | float) -> FloatArray:
    """Return what the least variance is short of a floor."""
    return np.maximum(np.asarray(floor, np.float64) - LEAST_VARIANCE, 0.0)


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
        Records' worth by which covariances are drawn to the pooled one; ``choose`` sets it.
    votes
        Recent log-likelihood of new records under each candidate of the shrinkage.
    """

    def __init__(self, n_components: int, d: int) -> None:
        self.shrinkage, self.votes = FIRST_SHRINKAGE, np.zeros(len(shrinkages(d)))
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
        old: GaussianMixture | None = None,
    ) -> GaussianMixture:
        """Begin with clusters around columns of ``Z`` (d, m), by the seeding of k-means++.

        The shrinkage and its votes are those of the ``old`` mixture, if there is one.
        """
        mixture = cls(n_components, len(Z))
        if old is not None:
            mixture.shrinkage, mixture.votes = old.shrinkage, old.votes
        X = np.where(np.isnan(Z), means(Z)[:, None], Z)
        shares = np.zeros((X.shape[1], n_components))
        shares[np.arange(len(shares)), _nearest_seeds(X.T, n_components, rng)] = 1.0
        mixture.learn(X, shares, 0.0)
        return mixture

    def log_density(
        self, Z: FloatArray, floor: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the log-density (m,) and the components' shares (m, K)."""
        raised = excess(floor).any()
        gaussians = self.gaussians.with_floor(floor) if raised else self.gaussians
        distance, norm = gaussians.distances(Z)
        result, shares = np.empty(Z.shape[1]), np.empty((Z.shape[1], len(self.weight)))
        mix(distance, norm, np.log(self.weight), result, shares)
        return result, shares

    def learn(self, Z: FloatArray, shares: FloatArray, kept: float) -> None:
        """Add the statistics of the columns of ``Z``; the earlier ones count ``kept`` times."""
        self.count *= kept
        self.sums *= kept
        self.squares *= kept
        self.count += shares.sum(axis=0)
        gaussians = self.gaussians
        missing_kernels.add_moments(
            Z, shares, LEAST_SHARE, gaussians.mean, gaussians.whitening, self.sums, self.squares
        )
        self.update()

    def update(self) -> None:
        """Set the parameters that the statistics give."""
        n, K = self.count.sum(), len(self.count)
        self.weight = (self.count + WEIGHT_PRIOR) / (n + WEIGHT_PRIOR * K)
        mean = self.sums / np.maximum(self.count, LEAST_COUNT)[:, None]
        mean = np.where(self.count[:, None] > LEAST_COUNT, mean, self.gaussians.mean)
        covariance = np.zeros_like(self.squares)
        kernels.shrink_to_pooled(
            self.count, mean, self.squares, self.shrinkage, LEAST_VARIANCE, covariance
        )
        self.gaussians = Gaussians(mean, covariance)

    def choose(self, Z: FloatArray) -> bool:
        """Take the shrinkage under which new columns (d, m) are likeliest; say if it changed."""
        before = self.shrinkage
        candidates = shrinkages(len(Z))
        lowest = -LOWEST * len(Z)
        log_likelihood = np.empty(len(candidates))
        for i, self.shrinkage in enumerate(candidates):
            self.update()
            log_likelihood[i] = np.maximum(self.log_density(Z)[0], lowest).sum()
        self.votes = FADING * self.votes + log_likelihood
        self.shrinkage = candidates[int(self.votes.argmax())]
        self.update()
        return self.shrinkage != before


def shrinkages(d: int) -> list[float]:
    """Candidates of a mixture's shrinkage, in records."""
    return [0.1, 0.4, 1.5, 5.0, 2.0 + d / 2, 2.0 + 2.0 * d]


def log_sums(shares: FloatArray) -> FloatArray:
    """Logarithm of the sum of exponentials of each row, which become shares of it."""
    result = np.empty(len(shares))
    log_sums_of_rows(shares, result)
    return result


def means(Z: FloatArray) -> FloatArray:
    """Return means (d,) of what is observed in the columns of ``Z`` (d, m), 0 where nothing is."""
    observed = ~np.isnan(Z)
    total = np.where(observed, Z, 0.0).sum(axis=1)
    return np.asarray(total / np.maximum(observed.sum(axis=1), 1), np.float64)


def _nearest_seeds(X: FloatArray, K: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw ``K`` rows of ``X`` (m, d), each by its squared distance from those before it."""
    farthest = 25.0 * X.shape[1]
    seed = X[rng.integers(len(X))]
    distance = ((X - seed) ** 2).sum(axis=1)
    nearest, near = np.zeros(len(X), np.int64), np.minimum(distance, farthest)
    for k in range(1, K):
        share = near / near.sum() if near.sum() > 0 else None
        other = ((X - X[rng.choice(len(X), p=share)]) ** 2).sum(axis=1)
        nearest = np.where(other < distance, k, nearest)
        distance, near = np.minimum(distance, other), np.minimum(near, other)
    return nearest
