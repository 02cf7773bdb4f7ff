"""What every model is asked, against its density: by grids, differences and tests of draws."""

import itertools
from functools import partial

import numpy as np
import pytest
from contract import LONG, NETWORKS, learned, of_each, whole
from densities import log_density
from scipy import stats
from subjects import MODELS, OF

pytestmark = pytest.mark.usefixtures("sooner", "blocks_of_three")


@LONG
@pytest.mark.parametrize("name", NETWORKS)
def test_a_score_is_within_a_billionth_of_the_exact_one(name):
    model, rows, _ = learned(name)
    rows[50:55] *= 3.0
    rows[55:] *= 100.0
    exact = log_density(model.network_, model.network_.root, model.evaluate(rows).Z.T)
    jacobian = ~np.isnan(rows) @ np.log(np.nan_to_num(model.scale_, nan=1.0))
    np.testing.assert_allclose(model.score_samples(rows), exact - jacobian, rtol=1e-9)


@of_each(MODELS)
def test_contributions_are_the_log_densities_without_a_field_less_those_with_it(name):
    model, rows, keys = learned(name)
    rows[7, 1:] = rows[3, 0] = np.nan
    found, density = model.contributions(rows, *keys), model.score_samples(rows, *keys)
    for column in range(rows.shape[1]):
        rest, known = rows.copy(), ~np.isnan(rows[:, column])
        rest[:, column] = np.nan
        assert np.isnan(found[~known, column]).all()
        if column >= rows.shape[1] - getattr(model, "n_categories", 0):
            known &= ~np.isnan(rows[:, -2:]).any(axis=1)  # sums over many pairs are not exact
        expected = model.score_samples(rest, *keys) - density
        np.testing.assert_allclose(found[known, column], expected[known], atol=1e-9)
    if hasattr(model, "given_others"):
        np.testing.assert_allclose(model.given_others(rows, *keys)[0], found, atol=1e-9)


@of_each([name for name in MODELS if not name.startswith("Categorical")])
def test_conditional_densities_and_what_is_filled_in_follow_from_densities_and_means(name):
    model, rows, keys = learned(name)
    rows[::3, 1] = np.nan
    rest = np.column_stack([rows[:, :1], np.full((len(rows), rows.shape[1] - 1), np.nan)])
    expected = model.score_samples(rows, *keys) - model.score_samples(rest, *keys)
    found = model.conditional_log_density(rows, *keys, given=[0])
    np.testing.assert_array_equal(found, expected)
    filled, (mean, _) = model.impute(rows, *keys), model.expected(rows, *keys)
    np.testing.assert_array_equal(filled, np.where(np.isnan(rows), mean, rows))


def on_axis(model, row, v, middle, width, key=None):
    """Return values of a field, and what of its density given the others of a row is at them."""
    x = middle + width * np.sinh(np.linspace(-14.0, 14.0, 20_001))
    rest, rows = row[None].copy(), np.tile(row, (len(x), 1))
    rest[:, v], rows[:, v] = np.nan, x
    joint, others = (
        model.score_samples(each, *([] if key is None else [[key] * len(each)]))
        for each in (rows, rest)
    )
    density = np.exp(joint - others)
    return (x[1:] + x[:-1]) / 2, np.diff(x) * (density[1:] + density[:-1]) / 2


@LONG
@pytest.mark.parametrize("name", NETWORKS)
def test_expected_values_are_the_moments_of_the_conditional_density(name):
    model, rows, _ = learned(name, 3)
    rows[2, -1] = np.nan
    means, deviations = model.expected(rows)
    for r, v in np.argwhere(~np.isnan(means)):  # of a field never observed nothing is expected
        mean, deviation = means[r, v], deviations[r, v]
        x, mass = on_axis(model, rows[r], v, mean, 1e-3 * deviation)
        assert mass.sum() == pytest.approx(1.0, abs=1e-4)
        assert mass @ x == pytest.approx(mean, abs=1e-3 * deviation)
        assert np.sqrt(mass @ (x - mean) ** 2) == pytest.approx(deviation, rel=5e-3)


@LONG
@pytest.mark.parametrize("known", [[], [2], [1, 2]])
@pytest.mark.parametrize("name", NETWORKS)
def test_quantiles_are_where_so_much_of_the_conditional_density_lies_below(name, known):
    model, rows, _ = learned(name, 1)
    row, levels = np.full_like(rows, np.nan), [0.01, 0.5, 0.99]
    row[0, known] = rows[0, known]
    mean, quantiles = model.conditional_quantiles(row, levels)
    low, middle, high = quantiles[:, 0, 0]
    x, mass = on_axis(model, row[0], 0, middle, 1e-3 * (high - low))
    found = np.interp([low, middle, high], x + np.diff(x, append=0.0) / 2, mass.cumsum())
    np.testing.assert_allclose(found, levels, atol=1e-4)
    assert mean[0, 0] == pytest.approx(mass @ x, abs=1e-3 * (high - low))
    np.testing.assert_array_equal(quantiles[:, 0, known], row[[0, 0, 0]][:, known])
    unseen = np.isnan(MODELS[name].rows).all(axis=0)
    assert np.isnan(mean[:, unseen]).all() and np.isnan(quantiles[:, :, unseen]).all()


@LONG
@pytest.mark.parametrize("name", NETWORKS)
def test_conditional_moments_of_several_fields_are_those_of_one_given_the_other(name):
    model, rows, _ = learned(name, 1)
    row = np.nan_to_num(rows[0])
    row[[0, -1]] = np.nan
    mean, covariance = model.conditional_moments(row)
    np.testing.assert_allclose(mean, model.impute(row[None])[0], rtol=1e-9)
    deviation = model.expected(row[None])[1][0, [0, -1]]
    np.testing.assert_allclose(np.sqrt(covariance.diagonal()[[0, -1]]), deviation, rtol=1e-9)
    x, mass = on_axis(model, row, 0, mean[0], 1e-3 * deviation[0])
    given = np.tile(row, (len(x), 1))
    given[:, 0] = x
    found = mass @ ((x - mean[0]) * model.expected(given)[0][:, -1])
    assert found == pytest.approx(covariance[0, -1], abs=1e-3 * deviation.prod())
    assert not covariance[1].any(), "nothing is unknown of a field that is given"


@LONG
@pytest.mark.parametrize("size", [1e3, 1e9, 1e30])
@pytest.mark.parametrize("name", NETWORKS)
def test_an_impossible_field_is_expected_where_the_others_say(name, size):
    model, rows, _ = learned(name, 1)
    row = np.nan_to_num(rows)
    without = row.copy()
    row[0, 0], without[0, 0] = size, np.nan
    for far, unknown in zip(model.expected(row), model.expected(without), strict=True):
        assert far[0, 0] == pytest.approx(unknown[0, 0], rel=1e-9)
    nats = model.score_samples(without) - model.score_samples(row)
    assert model.contributions(row)[0, 0] == pytest.approx(nats[0], rel=1e-12)


OF_ENTITIES = [name for name in MODELS if name.startswith("EntityDensity")]


@LONG
@pytest.mark.parametrize("known", [[], [0], [0, 2]])
@pytest.mark.parametrize(
    ("name", "key"),
    [*((name, None) for name in NETWORKS), *itertools.product(OF_ENTITIES, [OF[0], b"new"])],
)
def test_what_is_drawn_has_the_conditional_density_which_integrates_to_one(name, key, known):
    model, rows, _ = learned(name, 1)
    row = np.full(rows.shape[1], np.nan)
    row[known] = rows[0, known]
    drawn = model.sample(*([] if key is None else [key]), 2000, given=row, random_state=2)
    assert (drawn[:, known] == row[known]).all()
    v = max({1, 2, 3} - {*known} - {len(row)})
    found = drawn[:, v]
    x, mass = on_axis(model, row, v, np.median(found), 1e-3 * np.ptp(found), key)
    assert mass.sum() == pytest.approx(1.0, abs=1e-3)
    below = np.interp(found, x + np.diff(x, append=0.0) / 2, mass.cumsum())
    assert stats.kstest(below, "uniform").pvalue > 1e-3


@of_each(MODELS)
def test_what_is_drawn_repeats_with_a_seed_and_holds_what_is_given(name):
    model, rows, keys = learned(name, 1)
    given = np.where(np.arange(rows.shape[1]) == 0, 1.0, np.nan)
    draw = partial(model.sample, *(key[0] for key in keys), given=given)
    drawn = draw(50, random_state=4)
    np.testing.assert_array_equal(drawn, draw(50, random_state=4))
    assert (drawn != draw(50, random_state=5)).any() and drawn.shape == (50, rows.shape[1])
    assert (drawn[:, 0] == 1.0).all() and np.isfinite(model.score_samples(drawn[:1], *keys))
    assert model.to_bytes() == whole(name)[0], "drawing changes nothing"


@of_each(MODELS)
def test_no_rows_have_no_answers_and_one_without_any_value_has_density_one(name):
    model, rows, keys = learned(name, 1)
    none = [key[:0] for key in keys]
    assert model.score_samples(rows[:0], *none).shape == (0,)
    assert model.contributions(rows[:0], *none).shape == (0, rows.shape[1])
    nearly = pytest.approx([0.0], abs=1e-6 if keys else 1e-12)  # of entities in single precision
    assert model.score_samples(np.full_like(rows, np.nan), *keys) == nearly
    new = MODELS[name].new()
    assert new.partial_fit(rows[:0], *none).n_records_ == 0
