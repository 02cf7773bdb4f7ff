"""StackedSPN: its density by brute force, what learning may depend on, its state."""

from copy import deepcopy

import naive_stacked as naive
import numpy as np
import pytest
from interpreter import INTERPRETED
from streams import clusters

from faust_oslrau.learner import StackedSPN
from faust_oslrau.learner.state import pack, unpack

if INTERPRETED:
    pytest.skip("needs the compiler: long streams", allow_module_level=True)

D = 5
ROWS = clusters(5, 3000, D)
INCOMPLETE = clusters(6, 1500, 4, missing=0.1)


def learned(rows=ROWS[:2000], **parameters):
    return StackedSPN(**parameters).partial_fit(rows, batch_size=256)


@pytest.fixture(scope="module")
def model():
    return learned()


def test_a_row_without_any_value_has_density_one(model):
    assert model.score_samples(np.full((1, D), np.nan))[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("widest", "several"), [(256, 128), (2, 128), (3, 3)])
def test_every_answer_agrees_with_plain_numpy_while_it_learns(monkeypatch, widest, several):
    """With one covariance, with one in blocks, and with no more than that as in wide records."""
    monkeypatch.setattr("faust_oslrau.learner.stacked.background.WIDEST", widest)
    monkeypatch.setattr("faust_oslrau.learner.stacked.training.WIDEST_MIXTURE", several)
    model = StackedSPN(max_nodes=500)
    units = np.array([1.0, 1e3, 1e-3, 1.0])
    for start in range(0, 1500, 500):
        model.partial_fit(INCOMPLETE[start : start + 500] * units, batch_size=250)
        naive.assert_answers(model, INCOMPLETE[start + 3 : start + 7] * units, units)


def test_statistics_of_products_agree_with_plain_numpy(model):
    products = deepcopy(model._training.network.products)
    Z, _ = model._training.scaling.apply(ROWS[2000:2100])
    shares = products.log_densities(Z)[1]
    counts, alone = naive.expected_counts(products, Z, shares)
    products.learn(Z, shares, 0.0)
    # shares below a hundredth of a record and leaves below 1e-5 of a value are left out
    np.testing.assert_allclose(products.leaf_count, counts, atol=0.2)
    np.testing.assert_allclose(products.moments[0], alone, atol=0.01)


def test_gaussians_count_missing_values_by_their_conditional_moments(model):
    mixture = deepcopy(model._training.network.mixture)
    Z, _ = model._training.scaling.apply(ROWS[2000:2030])
    Z[1, ::3] = Z[4, ::5] = np.nan
    shares = np.zeros((30, len(mixture.weight)))
    shares[np.arange(30), np.arange(30) % 3] = 0.7
    covariances, means = mixture.gaussians.covariance(), mixture.gaussians.mean
    sums, squares = np.zeros_like(mixture.sums), np.zeros_like(mixture.squares)
    for r in range(30):
        _, mean, rest = naive.gaussian(means[r % 3], covariances[r % 3], 0.0, Z[:, r])
        sums[r % 3] += 0.7 * mean
        squares[r % 3] += 0.7 * np.tril(np.outer(mean, mean) + rest)
    mixture.learn(Z, shares, 0.0)
    np.testing.assert_allclose(mixture.sums, sums, atol=1e-9)
    np.testing.assert_allclose(mixture.squares, squares, atol=1e-9)


@pytest.mark.parametrize("location", [1e30, 3.3e97, -1e154, 1e300])
def test_units_far_from_all_records_stay_finite(location):
    values, arrays = unpack(learned(INCOMPLETE[:300]).to_bytes(), "StackedSPN")
    arrays["location"][0] = location
    model = StackedSPN.from_bytes(pack("StackedSPN", values, arrays))
    model.partial_fit(INCOMPLETE[300:900])
    assert np.isfinite(model.score_samples(INCOMPLETE[:50])).all()


def test_a_seed_gives_the_same_model_and_another_one_another():
    rows = ROWS[:600]
    assert learned(rows).to_bytes() == learned(rows).to_bytes()
    assert learned(rows, random_state=1).to_bytes() != learned(rows).to_bytes()


def wide(seed, n, d, missing=0.0):
    """Draw fields that 20 factors drive, each with a little noise of its own."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 20)) @ rng.normal(size=(20, d)) + rng.normal(size=(n, d))
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows


def test_samples_have_the_conditional_moments(monkeypatch):
    """Of the Gaussian over the whole stream, in blocks: a wide leaf would take far too many."""
    monkeypatch.setattr("faust_oslrau.learner.stacked.background.WIDEST", 3)
    monkeypatch.setattr("faust_oslrau.learner.stacked.training.WIDEST_MIXTURE", 3)
    rows = wide(1, 2000, 7) / 5
    model, row = learned(rows), rows[7].copy()
    weight = np.full(6, 1e-12)
    weight[2] = 1.0
    model._training.network.weight = weight / weight.sum()
    row[[0, 2, 5]] = np.nan
    for known in (row, np.full(7, np.nan)):
        mean, covariance = model.conditional_moments(known)
        drawn = model.sample(20_000, random_state=1, given=known)
        np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.05)
        np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.1)


def test_the_state_grows_in_proportion_to_the_fields():
    few, many = (len(learned(wide(4, 1300, d)).to_bytes()) / d for d in (300, 600))
    assert many < 1.2 * few


@pytest.mark.parametrize("constant", [0.003, 0.0, -40.0])
def test_a_value_far_from_a_constant_costs_its_record_some_nats(constant):
    rows = clusters(7, 3000, 4)
    rows[:, 1] = constant
    model = learned(rows)
    usual, odd = rows[-1:], rows[-1:].copy()
    odd[0, 1] = 250.0
    assert 5.0 < (model.score_samples(usual) - model.score_samples(odd))[0] < 70.0
