"""Records of more fields than one covariance takes: blocks of fields with factors in common.

A block has up to three fields here, so that every answer can be compared with plain numpy.
"""

from copy import deepcopy

import numpy as np
import pytest
from interpreter import INTERPRETED
from scipy.stats import multivariate_normal, norm

from faust_oslrau.learner import StackedSPN
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.merging import merge_models
from faust_oslrau.learner.stacked import background as module
from faust_oslrau.learner.stacked.background import Background
from faust_oslrau.learner.stacked.rescaling import move_units
from faust_oslrau.learner.state import pack, unpack

if INTERPRETED:
    pytest.skip("needs the compiler: long streams", allow_module_level=True)

D = 7
STRENGTHS = range(3)


def rows_of(seed, n, d=D, factors=2, noise=0.3):
    """Draw rows that factors drive, with the same loadings for each seed."""
    loadings = np.random.default_rng(99).normal(size=(factors, d))
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, factors)) @ loadings + noise * rng.normal(size=(n, d))


ROWS = rows_of(1, 2000)


@pytest.fixture(autouse=True)
def _blocks_of_three(monkeypatch):
    monkeypatch.setattr(module, "WIDEST", 3)
    monkeypatch.setattr("faust_oslrau.learner.stacked.sizes.WIDEST_MIXTURE", 3)


def background_of(rows):
    background = Background(rows.shape[1])
    for start in range(0, len(rows), 240):
        background.learn(np.ascontiguousarray(rows[start : start + 240].T), 1.0)
    return background


def learned(rows):
    return StackedSPN().partial_fit(rows, batch_size=256)


def weighing_one_gaussian(model, k):
    """Let the network be one of the Gaussians over the whole stream, but for 1e-12."""
    weight = np.full(8, 1e-12)
    weight[2 + k] = 1.0
    model._training.network.weight = weight / weight.sum()
    return model


def with_gaps(rows):
    """Leave out fields at random, a whole block, all fields but one, and all."""
    rows = rows.copy()
    rows[np.random.default_rng(0).random(rows.shape) < 0.3] = np.nan
    rows[0], rows[1, :2], rows[2, 1:], rows[3] = ROWS[0], np.nan, np.nan, np.nan
    return rows


def given(mean, covariance, row, asked):
    """Mean and covariance of the fields ``asked`` given what the others of a row are known to be;
    then the log-density of these."""
    known = ~np.isnan(row) & ~asked
    gain = np.linalg.solve(covariance[np.ix_(known, known)], covariance[np.ix_(known, asked)])
    centre = mean[asked] + (row - mean)[known] @ gain
    rest = covariance[np.ix_(asked, asked)] - covariance[np.ix_(asked, known)] @ gain
    log_density = 0.0
    if known.any():
        log_density = multivariate_normal(mean[known], covariance[np.ix_(known, known)]).logpdf(
            row[known]
        )
    return centre, rest, log_density


def test_densities_agree_with_scipy_whatever_is_missing():
    gaussians, rows = background_of(ROWS).gaussians, with_gaps(ROWS[:40])
    distance, log_norm = gaussians.distances(np.ascontiguousarray(rows.T))
    nothing = np.zeros(D, bool)
    for k in STRENGTHS:
        mean, covariance = gaussians.mean(k), gaussians.covariance(k)
        expected = [given(mean, covariance, row, nothing)[2] for row in rows]
        np.testing.assert_allclose(log_norm[k] - 0.5 * distance[k], expected, atol=1e-9)


def test_each_block_given_the_others_agrees_with_plain_numpy():
    gaussians, rows = background_of(ROWS).gaussians, with_gaps(ROWS[:20])
    parts = list(gaussians.given_the_others(np.ascontiguousarray(rows.T)))
    assert len(parts) == 20 * 3
    for part in parts:
        (r,) = range(20)[part.columns]
        asked = np.zeros(D, bool)
        asked[part.own] = True
        for k in STRENGTHS:
            expected = given(gaussians.mean(k), gaussians.covariance(k), rows[r], asked)
            np.testing.assert_allclose(part.gaussians.mean[k], expected[0], atol=1e-8)
            np.testing.assert_allclose(part.gaussians.covariance()[k], expected[1], atol=1e-8)
            found = part.norm[k, r] - 0.5 * part.distance[k, r]
            assert found == pytest.approx(expected[2], abs=1e-9)


def test_fields_of_a_block_are_related_as_if_they_were_alone():
    """Factors explain a part of a block's covariance and do not change it."""
    coupled = background_of(ROWS)
    for own in coupled.blocks:
        alone = background_of(ROWS[:, own])
        for k in STRENGTHS:
            np.testing.assert_allclose(
                coupled.gaussians.covariance(k)[own, own], alone.gaussians.covariance(k), atol=1e-9
            )


def test_factors_bring_what_one_covariance_over_all_fields_knows(monkeypatch):
    known, fresh = rows_of(2, 2000, 12), rows_of(3, 1000, 12)
    coupled = background_of(known).log_densities(np.ascontiguousarray(fresh.T))[0].mean()
    monkeypatch.setattr(module, "WIDEST", 12)
    whole = background_of(known).log_densities(np.ascontiguousarray(fresh.T))[0].mean()
    assert coupled == pytest.approx(whole, abs=0.05)


def test_fields_that_no_factor_drives_lose_little_by_factors():
    rng = np.random.default_rng(4)
    known, fresh = rng.normal(size=(2000, 12)), rng.normal(size=(5000, 12))
    found = background_of(known).log_densities(np.ascontiguousarray(fresh.T))[0].mean()
    assert found == pytest.approx(norm.logpdf(fresh).sum(axis=1).mean(), abs=0.1)


@pytest.mark.parametrize("k", STRENGTHS)
def test_quantiles_of_missing_fields_are_those_of_the_conditional_gaussian(k):
    model = weighing_one_gaussian(learned(ROWS), k)
    gaussians, scaling = model._training.network.background.gaussians, model._training.scaling
    rows = with_gaps(rows_of(5, 30))
    mean, quantiles = model.conditional_quantiles(rows, [0.05, 0.5, 0.99])
    for r, row in enumerate((rows - scaling.location) / scaling.scale):
        missing = np.isnan(row)
        if not missing.any():
            continue
        centre, rest, _ = given(gaussians.mean(k), gaussians.covariance(k), row, missing)
        centre = centre * scaling.scale[missing] + scaling.location[missing]
        spread = np.sqrt(np.diag(rest)) * scaling.scale[missing]
        np.testing.assert_allclose(mean[r, missing], centre, atol=1e-6)
        for i, level in enumerate([0.05, 0.5, 0.99]):
            expected = norm(centre, spread).ppf(level)
            np.testing.assert_allclose(quantiles[i, r, missing], expected, atol=2e-3)


def test_samples_have_the_conditional_moments():
    model, row = weighing_one_gaussian(learned(ROWS), 0), ROWS[7].copy()
    row[[0, 2, 5]] = np.nan
    for known in (row, np.full(D, np.nan)):
        mean, covariance = model.conditional_moments(known)
        drawn = model.sample(20_000, random_state=1, given=known)
        np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.05)
        np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.1)


def test_the_bits_of_a_score_do_not_depend_on_its_neighbours():
    model, rows = learned(ROWS), with_gaps(rows_of(6, 200))
    rows[17] = 1e12
    whole, blame = model.evaluate(rows).measures, model.contributions(rows)
    mean, quantiles = model.conditional_quantiles(rows, [0.1, 0.9])
    for r in range(0, 200, 7):
        one = slice(r, r + 1)
        assert model.evaluate(rows[one]).measures.tobytes() == whole[one].tobytes()
        assert model.contributions(rows[one]).tobytes() == blame[one].tobytes()
        found = model.conditional_quantiles(rows[one], [0.1, 0.9])
        assert found[0].tobytes() == mean[one].tobytes()
        assert found[1].tobytes() == np.ascontiguousarray(quantiles[:, one]).tobytes()
    some = model.evaluate(rows[13:147]).measures
    assert some.tobytes() == whole[13:147].tobytes()


@pytest.mark.parametrize("n", [10, 200, 1300])
def test_learning_after_a_round_trip_equals_learning_without_it(n):
    rows = rows_of(7, 3000)
    rows[::9, 4] = np.nan
    model = learned(rows[:n])
    copy = StackedSPN.from_bytes(model.to_bytes())
    assert copy.to_bytes() == model.to_bytes()
    for start in range(n, 3000, 256):
        model.partial_fit(rows[start : start + 256])
        copy.partial_fit(rows[start : start + 256])
    assert copy.to_bytes() == model.to_bytes()
    assert copy.score_samples(rows).tobytes() == model.score_samples(rows).tobytes()


@pytest.mark.parametrize("value", [1e9, -1e3])
def test_factors_that_explain_more_than_there_is_are_refused(value):
    values, arrays = unpack(learned(ROWS).to_bytes(), "StackedSPN")
    arrays["background_factors"][0, -3, 0] = value * 2000
    with pytest.raises(StateError, match="factors"):
        StackedSPN.from_bytes(pack("StackedSPN", values, arrays))


@pytest.mark.parametrize("seed", range(40))
def test_hostile_factors_never_crash(seed):
    """Whatever is accepted must still be a model that can score and learn."""
    values, arrays = unpack(learned(ROWS[:1500]).to_bytes(), "StackedSPN")
    rng, factors = np.random.default_rng(seed), arrays["background_factors"].reshape(-1)
    factors[rng.integers(len(factors))] *= rng.choice([-1.0, 0.0, 1.01, 1e3, 1e110])
    factors[rng.integers(len(factors))] += rng.choice([-1.0, 1.0]) * 10.0 ** rng.integers(-6, 6)
    try:
        model = StackedSPN.from_bytes(pack("StackedSPN", values, arrays))
    except StateError:
        return
    model.partial_fit(ROWS[1500:1756]).partial_fit(ROWS[1756:])
    assert np.isfinite(model.score_samples(with_gaps(ROWS[:50]))).all()


@pytest.mark.parametrize("name", ["background_factors", "background_standing"])
def test_blocks_without_what_blocks_have_are_refused(name):
    values, arrays = unpack(learned(ROWS).to_bytes(), "StackedSPN")
    del arrays[name]
    with pytest.raises(StateError, match="arrays"):
        StackedSPN.from_bytes(pack("StackedSPN", values, arrays))


@pytest.mark.parametrize("standing", [[0, 1], [0, 1, 3], [-1, 1, 2], [1, 2, 2]])
def test_strengths_that_nothing_stands_for_are_refused(standing):
    values, arrays = unpack(learned(ROWS).to_bytes(), "StackedSPN")
    arrays["background_standing"] = np.array(standing)
    with pytest.raises(StateError, match="strength"):
        StackedSPN.from_bytes(pack("StackedSPN", values, arrays))


def standing_of(model):
    return set(model._training.network.background.standing.tolist())


@pytest.fixture
def _settled_early(monkeypatch):
    monkeypatch.setattr("faust_oslrau.learner.stacked.training.SETTLED", 1500)


def test_strengths_that_bring_nothing_are_left_out_once_settled(monkeypatch, _settled_early):
    known, fresh = rows_of(12, 4000), rows_of(13, 4000)
    settled = learned(known)
    monkeypatch.setattr("faust_oslrau.learner.stacked.standing.LEAST_GAIN", -np.inf)
    whole = learned(known)
    assert len(standing_of(settled)) == 1 and len(standing_of(whole)) == 3
    loss = whole.score_samples(fresh) - settled.score_samples(fresh)
    assert loss.mean() < 0.005


def test_the_strength_that_repeated_fields_need_is_kept(_settled_early):
    """A field that is the sum of others needs a covariance that hardly anything is added to."""
    rows = rows_of(14, 4000)
    rows[:, 1] = rows[:, 0]
    model = learned(rows)
    assert standing_of(model) == {0}


def test_the_strength_whose_widths_are_needed_is_kept(_settled_early):
    rows = rows_of(15, 4000)
    rows[::20] *= 12.0
    assert 2 in standing_of(learned(rows))


def test_a_settled_model_goes_on_after_a_round_trip_as_without_it(_settled_early):
    rows, gaps = rows_of(16, 5000), with_gaps(rows_of(17, 40))
    model = learned(rows[:4000])
    copy = StackedSPN.from_bytes(model.to_bytes())
    assert len(standing_of(copy)) < 3 and copy.to_bytes() == model.to_bytes()
    for each in (model, copy):
        each.partial_fit(rows[4000:], batch_size=256)
    assert copy.to_bytes() == model.to_bytes()
    scores = model.score_samples(gaps)
    assert copy.score_samples(gaps).tobytes() == scores.tobytes()
    for r in range(40):
        assert model.score_samples(gaps[r : r + 1]).tobytes() == scores[r : r + 1].tobytes()


def test_a_merged_model_knows_how_the_blocks_of_all_parts_are_related():
    """Of streams with other means, whose models found the factors each on its own."""
    streams = [rows_of(8, 1500), rows_of(9, 1500) + 1.0]
    models = [weighing_one_gaussian(learned(rows), 0) for rows in streams]
    whole = np.concatenate(streams)
    background = merge_models(models)._training.network.background
    scaling = models[0]._training.scaling
    expected = np.cov(((whole - scaling.location) / scaling.scale).T)
    np.testing.assert_allclose(background.gaussians.covariance(0), expected, atol=0.08)


def test_a_network_in_other_units_says_the_same():
    model = learned(ROWS)
    moved, far = deepcopy(model), rows_of(10, 256)
    far[:, 1] += 1000.0
    assert move_units(moved._training, far)
    fresh = rows_of(11, 500)
    before, after = (
        each._training.network.background.log_densities(each._training.scaling.apply(fresh)[0])
        for each in (model, moved)
    )
    jacobian = np.log(moved._training.scaling.scale / model._training.scaling.scale).sum()
    np.testing.assert_allclose(after[:3] - jacobian, before[:3], atol=0.02)


def test_the_gaussian_is_one_leaf_over_all_fields():
    model = learned(ROWS)
    graph = model.to_networkx([f"f{v}" for v in range(D)])
    leaves = [node for _, node in graph.nodes(data=True) if node["kind"] == "multivariate_leaf"]
    assert len(graph) == model.n_nodes_ and len(leaves) == 6
    assert all(len(leaf["scope"]) == D for leaf in leaves)


def test_an_outline_has_the_correlations_of_few_fields_only(monkeypatch):
    model = learned(ROWS)
    assert any(model.outline()["correlation"])
    monkeypatch.setattr("faust_oslrau.learner.stacked.graph.WIDEST", 3)
    outline = model.outline()
    assert not any(outline["correlation"]) and outline["mean"][-1] is not None
