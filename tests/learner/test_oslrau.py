"""What a user of the model relies on: exact densities, original units, clear errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from interpreter import examples
from scipy.stats import multivariate_normal, norm
from streams import clusters

from faust_oslrau.learner import OSLRAU


@settings(max_examples=examples(60))
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 60), st.integers(1, 4)),
        elements=st.floats(allow_infinity=False, width=64) | st.sampled_from([0.0, 1.0, 7.0]),
    ),
    batch_size=st.integers(1, 20),
)
def test_any_finite_stream_gives_finite_densities(X, batch_size):
    model = OSLRAU(min_count=5)
    model.partial_fit(X, batch_size=batch_size)
    assert np.isfinite(model.score_samples(X)).all()
    model.partial_fit(X)
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("seed", range(4))
def test_rounding_does_not_decide_over_the_structure(seed):
    X = clusters(seed, 800, 3)
    jitter = 1 + 1e-13 * np.random.default_rng(9).normal(size=X.shape)
    plain = OSLRAU(min_count=20).partial_fit(X, batch_size=25)
    shaken = OSLRAU(min_count=20).partial_fit(X * jitter, batch_size=25)
    assert plain.n_nodes_ == shaken.n_nodes_ > 50
    np.testing.assert_allclose(shaken.score_samples(X), plain.score_samples(X), rtol=1e-6)


def test_a_field_first_seen_late_is_missing_until_then():
    X = clusters(8, 400, 3)
    X[:200, 1] = np.nan
    model = OSLRAU(min_count=20).partial_fit(X[:200], batch_size=50)
    unseen = model.score_samples(X[200:])
    X_without = X[200:].copy()
    X_without[:, 1] = np.nan
    np.testing.assert_array_equal(unseen, model.score_samples(X_without))
    model.partial_fit(X[200:], batch_size=50)
    assert (model.score_samples(X[200:]) != model.score_samples(X_without)).all()


def test_leaves_are_gaussians_of_their_records_and_a_floor_for_each_variable_widens_them():
    rng = np.random.default_rng(1)
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    X = rng.multivariate_normal([1, 2], covariance, size=400)
    alone = OSLRAU.paper(n_init_components=1, structure_until=0).partial_fit(X)
    variance = (1 + (X**2).sum(axis=0)) / 401 - (X.sum(axis=0) / 401) ** 2
    # the first update of a leaf counts its initial N(0, 1) as one observation
    expected = norm(X.sum(axis=0) / 401, np.sqrt(variance)).logpdf(X).sum(axis=1)
    np.testing.assert_allclose(alone.score_samples(X), expected, rtol=1e-12)
    floors = np.array([4.0, 1e-3])
    expected = norm(X.sum(axis=0) / 401, np.sqrt([4.0, variance[1]])).logpdf(X).sum(axis=1)
    np.testing.assert_allclose(alone.score_samples(X, variance_floor=floors), expected, rtol=1e-12)
    joint = OSLRAU.paper(n_init_components=1, min_count=1, max_leaf_vars=2)
    joint.partial_fit(X[:100]).partial_fit(X[100:])
    expected = multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True)).logpdf(X)
    np.testing.assert_allclose(joint.score_samples(X), expected, rtol=1e-10)
    wide = np.cov(X.T, bias=True) + np.diag(floors)
    expected = multivariate_normal(X.mean(axis=0), wide).logpdf(X)
    np.testing.assert_allclose(joint.score_samples(X, variance_floor=floors), expected, rtol=1e-10)
    found = joint.network_.with_variance_floor(floors)
    np.testing.assert_allclose(found.gaussian(found.root)[1], wide, rtol=1e-12)


@pytest.mark.parametrize("max_leaf_vars", [0, 2])
def test_the_same_scoring_floor_for_all_variables_gives_the_bits_of_a_number(max_leaf_vars):
    X = clusters(5, 2000, 3)
    model = OSLRAU(min_count=20, max_leaf_vars=max_leaf_vars).partial_fit(X, batch_size=50)
    before = model.score_samples(X)
    by_variable = model.score_samples(X, variance_floor=np.full(3, 0.01))
    np.testing.assert_array_equal(by_variable, model.score_samples(X, variance_floor=0.01))
    np.testing.assert_array_equal(model.score_samples(X), before)  # the model is as it was


def test_a_budget_too_small_for_the_fields_leaves_one_component():
    X = clusters(6, 900, 10)
    model = OSLRAU(max_nodes=4, standardize=False).partial_fit(X, batch_size=100)
    assert model.n_nodes_ <= 13  # the root, the background, a product, ten leaves
    assert np.isfinite(model.score_samples(X)).all()


def test_the_background_of_many_fields_is_a_product_of_gaussians(monkeypatch):
    monkeypatch.setattr("faust_oslrau.learner.algorithm.start.WIDEST_BACKGROUND", 3)
    X = clusters(5, 900, 7)
    model = OSLRAU(memory=2000, standardize=False).partial_fit(X[:600], batch_size=50)
    network = model.partial_fit(X[600:]).network_
    blocks = [child for child, _ in network.children(network.background)]
    assert [network.scope(block).tolist() for block in blocks] == [[0, 1], [2, 3], [4, 5, 6]]
    for block in blocks:
        own = X[:, network.scope(block)]
        mean, covariance = network.gaussian(block)
        np.testing.assert_allclose(mean, own.mean(axis=0), atol=0.2 * own.std())
        np.testing.assert_allclose(covariance, np.cov(own.T), atol=0.2 * own.var())
