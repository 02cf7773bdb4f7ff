"""Gaussians side by side and mixtures of them, against plain numpy and scipy."""

import numpy as np
import pytest
from densities import given
from scipy.stats import multivariate_normal
from streams import clusters

from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture
from faust_oslrau.learner.density.gaussians import Gaussians

SIZES = [1, 2, 3, 15, 16, 17, 33, 50]


@pytest.mark.parametrize("d", SIZES)
def test_gaussians_agree_with_scipy_whatever_is_missing(d):
    rng = np.random.default_rng(d)
    mean, factors = rng.normal(size=(3, d)), rng.normal(size=(3, d, 2 * d))
    covariance = factors @ factors.transpose(0, 2, 1) / d + 0.1 * np.eye(d)
    Z = rng.normal(size=(d, 20))
    Z[rng.random(Z.shape) < 0.3] = np.nan
    Z[:, 0], Z[:, 1], Z[: d - 1, 2] = 0.5, np.nan, np.nan  # all fields, none, the last one
    distance, norm = Gaussians(mean, np.tril(covariance)).distances(Z)
    for k in range(3):
        for r in range(Z.shape[1]):
            seen, expected = ~np.isnan(Z[:, r]), 0.0
            if seen.any():
                part = covariance[k][np.ix_(seen, seen)]
                expected = multivariate_normal(mean[k, seen], part).logpdf(Z[seen, r])
            assert norm[k, r] - 0.5 * distance[k, r] == pytest.approx(expected, abs=1e-9)


def test_of_a_covariance_lost_in_rounding_the_variances_count():
    """Differences of squares of values millions of deviations from 0."""
    n, mean = 50.0, 3e7 * np.array([1.0, -1.0, 2.0, -3.0])
    squares = np.outer(mean, mean) * n * (1.0 + 1e-16 * np.arange(16.0).reshape(4, 4))
    covariance = squares / n - np.outer(mean, mean) + 2e-5 * np.eye(4)
    gaussians = Gaussians(mean[None], covariance[None])
    assert np.isfinite(gaussians.whitening).all() and np.isfinite(gaussians.log_norm).all()
    variance = np.maximum(np.diag(covariance), 2e-5)
    np.testing.assert_allclose(gaussians.whitening[0], np.diag(variance**-0.5), rtol=1e-12)
    norm = -0.5 * np.log(2.0 * np.pi * variance).sum()
    assert gaussians.log_norm[0] == pytest.approx(norm, rel=1e-12)


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
