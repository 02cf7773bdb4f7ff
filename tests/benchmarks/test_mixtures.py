"""The baselines are the densities they claim to be."""

import numpy as np
from scipy.stats import multivariate_normal

from benchmarks.datasets import Setting
from benchmarks.mixtures import Mixture, offline_mixture, single_gaussian

SETTING = Setting(8, 10, 0)
FOLDS = np.split(np.random.default_rng(0).normal(size=(900, 2)) * [1.0, 3.0] + [5.0, 0.0], 9)


def test_a_mixture_sums_the_weighted_densities_of_its_components():
    means, covariances = np.array([[0.0, 1.0], [2.0, 2.0]]), np.array([np.eye(2), [[2, 1], [1, 3]]])
    mixture = Mixture(np.array([0.3, 0.7]), means, covariances)
    X = np.random.default_rng(1).normal(size=(20, 2))
    floor = 0.5 * np.eye(2)
    expected = 0.3 * multivariate_normal(means[0], covariances[0] + floor).pdf(X)
    expected += 0.7 * multivariate_normal(means[1], covariances[1] + floor).pdf(X)
    assert np.allclose(mixture.score_samples(X, variance_floor=0.5), np.log(expected))
    assert (mixture.n_nodes_, mixture.n_parameters_) == (3, 11)


def test_every_mixture_comes_near_the_entropy_of_a_gaussian():
    fresh = np.random.default_rng(2).normal(size=(2000, 2)) * [1.0, 3.0] + [5.0, 0.0]
    best = multivariate_normal([5.0, 0.0], np.diag([1.0, 9.0])).logpdf(fresh).mean()
    for fit, loss in ((single_gaussian, 0.01), (offline_mixture, 0.1)):
        found = fit(FOLDS, SETTING).score_samples(fresh).mean()
        assert best - loss < found < best + 1e-3, fit.__name__
