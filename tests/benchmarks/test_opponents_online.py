"""Online EM and Bayesian moment matching do what their papers say, on any structure."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

from benchmarks.datasets import Setting
from benchmarks.opponents.expectation_maximisation import OnlineEM
from benchmarks.opponents.moment_matching import MomentMatching
from benchmarks.opponents.multi_aspect import Counts
from benchmarks.opponents.online import OnePass
from benchmarks.opponents.structure import TreeDensity, mixture_tree, random_tree

SETTING = Setting(8, 10, 0)
FOLDS = np.split(np.random.default_rng(0).normal(size=(900, 2)) * [1.0, 3.0] + [5.0, 0.0], 9)


def trees(structure, node):
    """Enumerate the induced trees below a node: the nodes of each."""
    children = np.flatnonzero(structure.parent == node)
    below = [trees(structure, child) for child in children]
    if not below:
        return [[node]]
    if structure.of_sum[children[0]]:
        return [[node, *tree] for each in below for tree in each]
    product = [[node]]
    for each in below:
        product = [done + tree for done in product for tree in each]
    return product


def small_tree():
    structure, means = random_tree(3, 30, seed=0)
    rng = np.random.default_rng(1)
    weights = structure.weights(rng.uniform(0.5, 2.0, len(structure.kind)))
    return TreeDensity(structure, weights, means, rng.uniform(0.5, 2.0, (len(means), 1, 1)))


def by_enumeration(density, x):
    """Joint density of a row and each induced tree, and the trees."""
    structure = density.structure
    leaf = {node: number for number, node in enumerate(structure.leaves)}
    found = trees(structure, len(structure.kind) - 1)
    joint = np.ones(len(found))
    for number, tree in enumerate(found):
        joint[number] = density.weights[tree].prod()
        for node in set(tree) & set(leaf):
            variable, place = structure.scopes[leaf[node], 0], leaf[node]
            deviation = np.sqrt(density.covariances[place, 0, 0])
            joint[number] *= norm.pdf(x[variable], density.means[place, 0], deviation)
    return joint, found


def test_density_and_shares_of_nodes_are_sums_over_induced_trees():
    density = small_tree()
    x = np.array([0.3, -1.2, 0.8])
    joint, found = by_enumeration(density, x)
    assert_allclose(density.score_samples(x[None]), np.log(joint.sum()))
    values = density.values(x[None], 1 / np.sqrt(density.covariances))
    shares = density.structure.shares(density.weights, values)[0]
    through = [joint[[node in tree for tree in found]].sum() for node in range(len(shares))]
    assert_allclose(shares, np.array(through) / joint.sum())
    of_sum, parent = density.structure.of_sum, density.structure.parent
    n_sums = len(set(parent[of_sum].tolist()))
    assert density.n_parameters_ == of_sum.sum() - n_sums + 2 * len(density.means)


def test_a_structure_with_leaves_of_all_variables_is_a_mixture():
    structure, means = mixture_tree(np.random.default_rng(0).normal(size=(50, 2)))
    weights = np.append(np.arange(1.0, 11.0) / 55.0, 1.0)
    covariances = np.tile([[2.0, 0.5], [0.5, 1.0]], (10, 1, 1))
    X = np.random.default_rng(1).normal(size=(70, 2))
    expected = sum(
        weight * multivariate_normal(mean, covariances[0] + 0.5 * np.eye(2)).pdf(X)
        for weight, mean in zip(weights[:-1], means, strict=True)
    )
    density = TreeDensity(structure, weights, means, covariances)
    assert_allclose(density.score_samples(X, variance_floor=0.5), np.log(expected))
    assert (density.n_nodes_, density.n_parameters_) == (11, 9 + 10 * 5)


@pytest.mark.parametrize("learner", [OnlineEM, MomentMatching])
@pytest.mark.parametrize(
    "structure", [mixture_tree, lambda first: random_tree(first.shape[1], 40, seed=1)]
)
def test_every_learner_comes_near_the_entropy_of_a_gaussian_on_every_structure(learner, structure):
    fresh = np.random.default_rng(2).normal(size=(2000, 2)) * [1.0, 3.0] + [5.0, 0.0]
    best = multivariate_normal([5.0, 0.0], np.diag([1.0, 9.0])).logpdf(fresh).mean()
    density = OnePass(lambda first: learner(*structure(first)))(FOLDS, SETTING)
    assert best - 0.3 < density.score_samples(fresh).mean() < best + 1e-3


def test_mstreams_statistic_is_that_of_its_paper():
    counts, ticks = Counts(), 5
    for _ in range(9):
        counts.score(np.zeros(2, np.int64), 1)
    counts.fade()
    found = counts.score(np.zeros(2, np.int64), ticks)
    current, total = 0.6 * 9 + 1, 10
    expected = (current - total / ticks) ** 2 * ticks**2 / (total * (ticks - 1))
    assert found == pytest.approx(expected)
