"""What oSLRAU is compared with are the densities that they claim to be, and so are its drawings."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from benchmarks.components import components_of
from benchmarks.datasets import Setting
from benchmarks.mixtures import Mixture, offline_mixture, single_gaussian
from benchmarks.random_structure import random_model, random_structure
from benchmarks.toy import learn_toy, toy_data


def deviations(component):
    return np.sqrt([component.variances[v] for v in range(3)])


def test_the_components_are_the_networks_density():
    X = toy_data(500, np.random.default_rng(0))
    model = learn_toy(X, 50)
    components = components_of(model.network_, range(3))
    assert len(components) > 4
    density = sum(
        c.weight * norm.pdf(X, [c.means[v] for v in range(3)], deviations(c)).prod(axis=1)
        for c in components
    )
    assert np.allclose(np.log(density), model.score_samples(X))


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


@pytest.mark.parametrize(("d", "n_nodes"), [(1, 1), (2, 50), (3, 200), (8, 1000), (48, 3000)])
def test_it_has_at_least_as_many_nodes_and_covers_every_variable(d, n_nodes):
    model = random_model(d, n_nodes, seed=0)
    assert model.n_nodes_ >= n_nodes
    assert np.isfinite(model.score_samples(np.zeros((1, d)))).all()


def test_learning_changes_parameters_and_never_the_structure():
    X = np.random.default_rng(0).normal(2.0, 1.0, size=(400, 3))
    blank, learned = (
        random_model(3, 100, seed=1), random_structure(100, seed=1)([X], Setting(1, 10, 0))
    )  # fmt: skip
    assert learned.node_counts_ == blank.node_counts_
    assert learned.score_samples(X).mean() > blank.score_samples(X).mean() + 1.0
