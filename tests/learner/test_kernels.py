"""Kernels that take many columns at a time, against plain numpy, for sizes around whole lanes."""

import numpy as np
import pytest

from faust_oslrau.learner.density.gaussians import Gaussians
from faust_oslrau.learner.queries.scaling import LARGEST_VALUE, Scaling

SIZES = [1, 2, 3, 15, 16, 17, 33, 50]


@pytest.mark.parametrize("d", SIZES)
def test_whitening_is_the_inverse_of_the_cholesky_factor(d):
    A = np.random.default_rng(d).normal(size=(3, d, 2 * d))
    covariance = A @ A.transpose(0, 2, 1) / d + 0.1 * np.eye(d)
    gaussians = Gaussians(np.zeros((3, d)), np.tril(covariance))
    expected = np.linalg.inv(np.linalg.cholesky(covariance))
    np.testing.assert_allclose(gaussians.whitening, expected, atol=1e-10)
    determinant = np.linalg.slogdet(2.0 * np.pi * covariance)[1]
    np.testing.assert_allclose(gaussians.log_norm, -0.5 * determinant, atol=1e-10)


def test_a_covariance_of_equal_fields_has_a_finite_whitening():
    gaussians = Gaussians(np.zeros((1, 20)), np.ones((1, 20, 20)))
    assert np.isfinite(gaussians.whitening).all() and np.isfinite(gaussians.log_norm).all()


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("m", [1, 15, 16, 40])
def test_standardised_values_are_differences_over_scales(d, m):
    rng = np.random.default_rng(d)
    X, location, scale = rng.normal(size=(m, d)), rng.normal(size=d), rng.uniform(0.1, 2.0, d)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0, 0], X[-1, -1] = 1e300, -1e300
    Z, jacobian = Scaling.of(location, scale).apply(X)
    expected = np.clip((X - location) / scale, -LARGEST_VALUE, LARGEST_VALUE)
    np.testing.assert_array_equal(Z, expected.T)
    known = np.where(np.isnan(X), 0.0, np.log(scale))
    np.testing.assert_allclose(jacobian, known.sum(axis=1), atol=1e-12)
