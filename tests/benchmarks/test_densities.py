"""Baselines and opponents are the densities that they claim to be."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from benchmarks.components import components_of
from benchmarks.datasets import Setting
from benchmarks.mixtures import Mixture, offline_mixture, single_gaussian
from benchmarks.opponents.expectation_maximisation import OnlineEM
from benchmarks.opponents.moment_matching import MomentMatching
from benchmarks.opponents.multi_aspect import Counts
from benchmarks.opponents.online import OnePass
from benchmarks.opponents.parzen import Parzen
from benchmarks.opponents.sizes import Opaque, Size
from benchmarks.opponents.structure import TreeDensity, mixture_tree, random_tree
from benchmarks.random_structure import random_model, random_structure
from benchmarks.toy import learn_toy, toy_data

SETTING = Setting(8, 10, 0)
FOLDS = np.split(np.random.default_rng(0).normal(size=(900, 2)) * [1.0, 3.0] + [5.0, 0.0], 9)


def test_the_components_are_the_networks_density():
    X = toy_data(500, np.random.default_rng(0))
    model = learn_toy(X, 50)
    components = components_of(model.network_, range(3))
    assert len(components) > 4
    density = 0.0
    for one in components:
        mean, variance = ([of[v] for v in range(3)] for of in (one.means, one.variances))
        density += one.weight * norm.pdf(X, mean, np.sqrt(variance)).prod(axis=1)
    assert np.allclose(np.log(density), model.score_samples(X))


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


def online(learner, structure):
    return lambda folds, setting: OnePass(lambda first: learner(*structure(first)))(folds, setting)


def random_of_40(first):
    return random_tree(first.shape[1], 40, seed=1)


@pytest.mark.parametrize(
    ("fit", "loss"),
    [
        (single_gaussian, 0.01),
        (offline_mixture, 0.1),
        (random_structure(100, seed=1), 0.3),
        *((online(learner, structure), 0.3) for learner in (OnlineEM, MomentMatching)
          for structure in (mixture_tree, random_of_40)),
    ],
)  # fmt: skip
def test_every_one_comes_near_the_entropy_of_a_gaussian(fit, loss):
    fresh = np.random.default_rng(2).normal(size=(2000, 2)) * [1.0, 3.0] + [5.0, 0.0]
    best = multivariate_normal([5.0, 0.0], np.diag([1.0, 9.0])).logpdf(fresh).mean()
    assert best - loss < fit(FOLDS, SETTING).score_samples(fresh).mean() < best + 1e-3


def test_a_mixture_sums_the_weighted_densities_of_its_components():
    means, covariances = np.array([[0.0, 1.0], [2.0, 2.0]]), np.array([np.eye(2), [[2, 1], [1, 3]]])
    mixture = Mixture(np.array([0.3, 0.7]), means, covariances)
    X = np.random.default_rng(1).normal(size=(20, 2))
    floor = 0.5 * np.eye(2)
    expected = 0.3 * multivariate_normal(means[0], covariances[0] + floor).pdf(X)
    expected += 0.7 * multivariate_normal(means[1], covariances[1] + floor).pdf(X)
    assert np.allclose(mixture.score_samples(X, variance_floor=0.5), np.log(expected))
    assert (mixture.n_nodes_, mixture.n_parameters_) == (3, 11)


@pytest.mark.parametrize(("d", "n_nodes"), [(1, 1), (2, 50), (3, 200), (8, 1000), (48, 3000)])
def test_a_random_structure_has_at_least_as_many_nodes_and_covers_every_variable(d, n_nodes):
    model = random_model(d, n_nodes, seed=0)
    assert model.n_nodes_ >= n_nodes
    assert np.isfinite(model.score_samples(np.zeros((1, d)))).all()


def test_mstreams_statistic_is_that_of_its_paper():
    counts, ticks = Counts(), 5
    for _ in range(9):
        counts.score(np.zeros(2, np.int64), 1)
    counts.fade()
    found = counts.score(np.zeros(2, np.int64), ticks)
    current, total = 0.6 * 9 + 1, 10
    expected = (current - total / ticks) ** 2 * ticks**2 / (total * (ticks - 1))
    assert found == pytest.approx(expected)


SIZE = Size(nodes=100, parameters=600, seed=1)
TRUTH = multivariate_normal([1.0, 0.0], [[1.0, 0.8], [0.8, 1.0]])
DRAWN = np.split(TRUTH.rvs(1800, random_state=0), 9)
FRESH = TRUTH.rvs(1000, random_state=1)
BEST = TRUTH.logpdf(FRESH).mean()

AXIS = np.linspace(-7.0, 7.0, 141)
GRID = np.array([*product(AXIS, AXIS)])
CELL = (AXIS[1] - AXIS[0]) ** 2


def integral(density):
    return np.exp(density.score_samples(GRID)).sum() * CELL


def bits(n):
    return np.array([*product([0.0, 1.0], repeat=n)])


def test_parzen_windows_are_the_mean_of_gaussians():
    kernels, X = np.array([[0.0], [2.0], [3.0]]), np.array([[0.5], [2.5]])
    expected = norm.pdf(X, kernels.T, np.sqrt(0.3**2 + 0.1)).mean(axis=1)
    found = Parzen(kernels, 0.3).score_samples(X, variance_floor=0.1)
    assert_allclose(found, np.log(expected), rtol=1e-3)


def test_noise_on_records_widens_a_density_without_variances():
    narrow = Opaque(lambda X: norm(0.0, 0.5).logpdf(X[:, 0]), n_parameters_=2)
    X = np.array([[0.0], [1.0], [2.0]])
    wide = norm(0.0, np.sqrt(0.25 + 0.01)).logpdf(X[:, 0])
    assert_allclose(narrow.score_samples(X), norm(0.0, 0.5).logpdf(X[:, 0]))
    assert_allclose(narrow.score_samples(X, variance_floor=0.01), wide, atol=0.4)


def test_a_vine_comes_near_the_truth_and_no_record_has_a_density_of_zero():
    pytest.importorskip("pyvinecopulib", reason="needs pyvinecopulib: pip install '.[opponents]'")
    from benchmarks.opponents.vine import vine_copula

    vine = vine_copula(DRAWN, SETTING)
    assert BEST - 0.1 < vine.score_samples(FRESH).mean() < BEST + 0.02
    assert np.isfinite(vine.score_samples(np.array([[30.0, -30.0]]))).all()
    assert integral(vine) == pytest.approx(1.0, abs=0.02)


def test_real_nvp_is_a_density_of_about_the_size_asked_for(monkeypatch):
    pytest.importorskip("zuko", reason="needs zuko: pip install '.[opponents]'")
    from benchmarks.opponents import training
    from benchmarks.opponents.real_nvp import offline, online

    monkeypatch.setattr(training, "MOST_SEEN", 100_000)
    trained, passed = (make(SIZE)(DRAWN, SETTING) for make in (offline, online))
    assert trained.n_parameters_ == pytest.approx(SIZE.parameters, rel=0.2)
    assert BEST - 0.2 < trained.score_samples(FRESH).mean() < BEST + 0.02
    assert passed.score_samples(FRESH).mean() < trained.score_samples(FRESH).mean()
    assert integral(trained) == pytest.approx(1.0, abs=0.01)


def test_an_einsum_network_is_a_density_with_a_least_variance():
    pytest.importorskip("spflow", reason="needs SPFlow: pip install '.[opponents]'")
    from benchmarks.opponents.einsum_network import EinsumNetwork, network_of

    density = EinsumNetwork(network_of(2, 3, seed=0))
    assert integral(density) == pytest.approx(1.0, abs=0.01)
    peak = np.array([[0.0, 0.0]])
    assert density.score_samples(peak, variance_floor=1e6) < -2 * np.log(1e3)


def machine(v, h, *, gaussian):
    import torch

    from benchmarks.opponents.boltzmann import Machine

    made = Machine(v, h, gaussian=gaussian)
    generator = torch.Generator().manual_seed(v)
    with torch.no_grad():
        for part in made.parameters():
            part.copy_(torch.randn(part.shape, generator=generator, dtype=torch.float64))
    return made


def energies(made):
    """Log of a binary machine's unnormalised probabilities of its visible units."""
    import torch

    with torch.no_grad():
        return made.log_unnormalised(torch.from_numpy(bits(len(made.visible)))).numpy()


def test_stacked_machines_have_the_density_of_enumeration(monkeypatch):
    pytest.importorskip("torch", reason="needs torch: pip install '.[opponents]'")
    from benchmarks.opponents import boltzmann

    monkeypatch.setattr(boltzmann, "SAMPLES", 2_000)
    lower, upper = machine(2, 4, gaussian=True), machine(4, 4, gaussian=False)
    stack, X = boltzmann.Stack(lower, upper), np.array([[0.5, -1.0], [2.0, 0.0]])
    hidden, log_hidden = bits(4), energies(upper) - logsumexp(energies(upper))
    weights, shift = lower.weights.detach().numpy(), lower.visible.detach().numpy()
    deviation = np.exp(0.5 * lower.log_variance.detach().numpy())
    given = norm.logpdf(X[:, None], shift + hidden @ weights.T, deviation).sum(axis=2)
    expected = logsumexp(given + log_hidden, axis=1)
    assert_allclose(stack.score_samples(X), expected, atol=0.1)
    assert stack.n_parameters_ == (2 * 4 + 2 + 4 + 2) + (4 * 4 + 4 + 4) - 4
