"""The offline opponents are the densities that they claim to be."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from benchmarks.datasets import Setting
from benchmarks.opponents.parzen import Parzen
from benchmarks.opponents.sizes import Opaque, Size

SETTING = Setting(8, 10, 0)
SIZE = Size(nodes=100, parameters=600, seed=1)
TRUTH = multivariate_normal([1.0, 0.0], [[1.0, 0.8], [0.8, 1.0]])
FOLDS = np.split(TRUTH.rvs(1800, random_state=0), 9)
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

    vine = vine_copula(FOLDS, SETTING)
    assert BEST - 0.1 < vine.score_samples(FRESH).mean() < BEST + 0.02
    assert np.isfinite(vine.score_samples(np.array([[30.0, -30.0]]))).all()
    assert integral(vine) == pytest.approx(1.0, abs=0.02)


def test_real_nvp_is_a_density_of_about_the_size_asked_for(monkeypatch):
    pytest.importorskip("zuko", reason="needs zuko: pip install '.[opponents]'")
    from benchmarks.opponents import training
    from benchmarks.opponents.real_nvp import offline, online

    monkeypatch.setattr(training, "MOST_SEEN", 100_000)
    trained, passed = (make(SIZE)(FOLDS, SETTING) for make in (offline, online))
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
