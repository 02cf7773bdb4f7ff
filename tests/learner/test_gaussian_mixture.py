"""A mixture of Gaussians with full covariances counts what it does not see by its expectation."""

import numpy as np
from streams import clusters

from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture


def given(mean, covariance, z):
    """A column with the mean of what it lacks given the others, and the covariance of that."""
    seen = ~np.isnan(z)
    gain = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen]).T
    rest = covariance - gain @ covariance[seen]
    rest[seen], rest[:, seen] = 0.0, 0.0
    return np.where(seen, z, mean + gain @ (z[seen] - mean[seen])), rest


def test_missing_values_count_by_their_conditional_moments():
    Z = clusters(5, 400, 5).T.copy()
    mixture = GaussianMixture.of_seeds(Z, 3, np.random.default_rng(0))
    Z = Z[:, :30]
    Z[1, ::3] = Z[4, ::5] = np.nan
    shares = np.zeros((30, 3))
    shares[np.arange(30), np.arange(30) % 3] = 0.7
    factors = np.linalg.inv(mixture.gaussians.whitening)
    sums, squares = mixture.sums.copy(), mixture.squares.copy()
    for r in range(30):
        k = r % 3
        x, rest = given(mixture.gaussians.mean[k], factors[k] @ factors[k].T, Z[:, r])
        sums[k] += 0.7 * x
        squares[k] += 0.7 * np.tril(np.outer(x, x) + rest)
    mixture.learn(Z, shares, 1.0)
    np.testing.assert_allclose(mixture.sums, sums, atol=1e-9)
    np.testing.assert_allclose(mixture.squares, squares, atol=1e-9)
