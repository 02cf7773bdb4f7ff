"""The true densities of generated streams are those of what the streams draw."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from benchmarks import blame, oracle

SLOPE = np.array([0.5, -0.3, 0.2])
SPREAD = 0.3


@pytest.fixture
def skewed():
    """Return the density of log-normal fields, and records of it."""
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(200, 1)) * SLOPE + SPREAD * rng.normal(size=(200, 3))
    return oracle.of_skewed(SLOPE, SPREAD), np.exp(logs)


def covariance():
    return np.outer(SLOPE, SLOPE) + SPREAD**2 * np.eye(3)


def test_a_log_normal_density_is_that_of_the_closed_form(skewed):
    density, rows = skewed
    logs = np.log(rows)
    expected = multivariate_normal(cov=covariance()).logpdf(logs) - logs.sum(axis=1)
    np.testing.assert_allclose(density.score_samples(rows), expected, atol=1e-6)
    rows[:, 1] = np.nan
    rest = multivariate_normal(cov=covariance()[np.ix_([0, 2], [0, 2])]).logpdf(logs[:, [0, 2]])
    np.testing.assert_allclose(density.score_samples(rows), rest - logs[:, [0, 2]].sum(axis=1))


def test_a_field_given_the_others_has_the_moments_of_the_closed_form(skewed):
    density, rows = skewed
    nats, mean, deviation = density.given_others(rows)
    logs, cov = np.log(rows), covariance()
    gain = np.linalg.solve(cov[1:, 1:], cov[1:, 0])
    centre, variance = logs[:, 1:] @ gain, cov[0, 0] - cov[0, 1:] @ gain
    of_log = norm.logpdf(logs[:, 0], centre, np.sqrt(variance))
    np.testing.assert_allclose(nats[:, 0], logs[:, 0] - of_log, atol=1e-6)
    np.testing.assert_allclose(mean[:, 0], np.exp(centre + variance / 2), rtol=1e-5)
    np.testing.assert_allclose(deviation[:, 0], mean[:, 0] * np.sqrt(np.expm1(variance)), rtol=1e-4)


@pytest.mark.parametrize("stream", [blame.heavy, blame.skewed, blame.bursts])
def test_the_density_of_one_field_sums_to_one(stream):
    own = stream(np.random.default_rng(1), 1, 2).oracle
    x = np.sinh(np.linspace(-7.0, 7.0, 4_001))
    rows = np.column_stack([x, np.full(len(x), np.nan)])
    assert np.trapezoid(np.exp(own.score_samples(rows)), x) == pytest.approx(1.0, abs=1e-3)
