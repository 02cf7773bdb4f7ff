"""The density of a record given its entity, as an estimator."""

import functools

import numpy as np
import pytest
from scipy import stats
from subjects import WITH_MIXTURES
from test_entities import machines

from faust_oslrau.learner import OSLRAU, EntityDensity, StreamScorer

KEYS, ROWS, LEVELS, SCALES = machines(1, 3000, 30, 3, missing=0.05)


@functools.cache
def taught(n=2000):
    return EntityDensity(OSLRAU(min_count=32)).partial_fit(ROWS[:n], KEYS[:n], batch_size=256)


NEW_ROWS, NEW_KEYS = ROWS[2000:2200], KEYS[2000:2200]


@pytest.mark.parametrize("kind", [OSLRAU, WITH_MIXTURES])
def test_the_density_is_that_of_a_stream_scorer(kind):
    """Of the first record of each entity after a boundary: no later one has changed its entity."""
    rows, keys = ROWS.copy(), [b"0-%b" % key for key in KEYS]
    scorer, density = StreamScorer(kind(), max_entities=1000), EntityDensity(kind())
    compared = 0
    for start, stop in [(0, 16), (16, 48), (48, 112), (112, 240), (240, 496), (496, 752)]:
        block = scorer.process(rows[start:stop], keys[start:stop])
        assert block.held_back == 0, "the guard must let all records pass"
        if start > 0:
            _, first = np.unique(keys[start:stop], return_index=True)
            found = density.score_samples(rows[start:stop], keys[start:stop])
            np.testing.assert_array_equal(found[first], block.log_likelihood[first])
            compared += len(first)
        density.partial_fit(rows[start:stop], keys[start:stop])
    assert compared > 100


@pytest.mark.parametrize("key", [b"machine-3", b"new"])
def test_the_density_of_an_entity_integrates_to_one(key):
    density = EntityDensity().partial_fit(ROWS[:1000, :1], KEYS[:1000], batch_size=256)
    x = np.sinh(np.linspace(-12, 12, 20_001)) * 0.1
    p = np.exp(density.score_samples(x[:, None], [key] * len(x)))
    assert np.trapezoid(p, x) == pytest.approx(1.0, abs=1e-3)


def test_what_is_usual_for_another_entity_is_unlikely_and_expected_where_it_is():
    keys, level = [b"machine-3", b"machine-4"], LEVELS[[3, 4]]
    own, other = (taught().score_samples(rows, keys) for rows in (level, level[::-1]))
    assert (own > other + 5).all()
    mean, deviation = taught().expected(np.full((2, 3), np.nan), keys)
    assert (np.abs(mean - level) < SCALES[[3, 4]]).all()
    assert (deviation < 3 * SCALES[[3, 4]]).all()
    profile = taught().profile("machine-3")
    assert (np.abs(profile.level - level[0]) < SCALES[3]).all()
    assert taught().profile("new") is None and EntityDensity().profile("new") is None


def test_contributions_are_conditional_densities():
    rows = NEW_ROWS[~np.isnan(NEW_ROWS).any(axis=1)][:50]
    keys = np.array(NEW_KEYS)[~np.isnan(NEW_ROWS).any(axis=1)][:50]
    found = taught().contributions(rows, keys)
    for v in range(3):
        others = rows.copy()
        others[:, v] = np.nan
        given = taught().score_samples(rows, keys) - taught().score_samples(others, keys)
        np.testing.assert_allclose(-found[:, v], given, atol=1e-6)
    assert np.isnan(taught().contributions([[np.nan, 1.0, 1.0]], ["new"])[0, 0])


def in_quantiles(density, drawn, row, field, key):
    """What share of a field's conditional density lies below each of the drawn values."""
    low, high = np.quantile(drawn, [0.0, 1.0]) + np.array([-1.0, 1.0]) * np.ptp(drawn)
    x = np.unique(np.concatenate([np.linspace(low, high, 20_001), drawn]))
    rows = np.tile(row, (len(x), 1))
    rows[:, field] = x
    given = np.flatnonzero(~np.isnan(row))
    p = np.exp(density.conditional_log_density(rows, [key] * len(x), given))
    below = np.concatenate([[0.0], np.cumsum(0.5 * (p[1:] + p[:-1]) * np.diff(x))])
    assert below[-1] == pytest.approx(1.0, abs=0.02)
    return np.interp(drawn, x, below)


@pytest.mark.parametrize("n", [200, 2000], ids=["network only", "mixed"])
@pytest.mark.parametrize("key", [b"machine-3", b"new"])
@pytest.mark.parametrize("given", [(), (0,), (0, 2)])
def test_drawn_rows_have_the_conditional_density_of_the_entity(n, key, given):
    density, row = taught(n), np.full(3, np.nan)
    row[list(given)] = (LEVELS[3] + [1.0, 0.0, -1.0] * SCALES[3])[list(given)]
    drawn = density.sample(key, 2000, given=row, random_state=1)
    np.testing.assert_array_equal(drawn[:, list(given)], np.tile(row[list(given)], (2000, 1)))
    found = in_quantiles(density, drawn[:, 1], row, 1, key)
    assert stats.kstest(found, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("kind", [OSLRAU, WITH_MIXTURES])
def test_drawing_repeats_with_a_seed_and_changes_nothing(kind):
    density = EntityDensity(kind()).partial_fit(ROWS[:600], KEYS[:600], batch_size=100)
    before = density.to_bytes()
    drawn = density.sample("machine-3", 50, random_state=4)
    np.testing.assert_array_equal(drawn, density.sample("machine-3", 50, random_state=4))
    assert (drawn != density.sample("machine-3", 50, random_state=5)).any()
    own, other = (density.score_samples(drawn, [key] * 50).mean() for key in KEYS[:2])
    assert np.isfinite([own, other]).all() and density.to_bytes() == before
    assert density.sample("machine-3").shape == (1, 3)
    whole = density.sample("machine-3", 2, given=LEVELS[3])
    np.testing.assert_array_equal(whole, np.tile(LEVELS[3], (2, 1)))


def test_missing_fields_are_filled_with_what_is_expected_of_the_entity():
    rows = np.array([[LEVELS[3, 0], np.nan, np.nan], [np.nan, LEVELS[4, 1], LEVELS[4, 2]]])
    keys = [b"machine-3", b"machine-4"]
    filled = taught().impute(rows, keys)
    mean, _ = taught().expected(rows, keys)
    np.testing.assert_array_equal(filled, np.where(np.isnan(rows), mean, rows))
    assert (np.abs(filled - LEVELS[[3, 4]]) < 2 * SCALES[[3, 4]]).all()


def test_a_conditional_density_is_that_of_the_row_over_that_of_the_condition():
    rows, keys = NEW_ROWS[:20], NEW_KEYS[:20]
    condition = np.column_stack([rows[:, 0], np.full((20, 2), np.nan)])
    expected = taught().score_samples(rows, keys)
    expected -= taught().score_samples(condition, keys)
    found = taught().conditional_log_density(rows, keys, given=[0])
    np.testing.assert_array_equal(found, expected)
    nothing = taught().conditional_log_density(rows, keys, given=[])
    np.testing.assert_allclose(nothing, taught().score_samples(rows, keys), atol=1e-6)


@pytest.mark.parametrize("m", [1, 2])
def test_the_first_mini_batch_may_be_short(m):
    density = EntityDensity().partial_fit(ROWS[:m], KEYS[:m]).partial_fit(ROWS[m:99], KEYS[m:99])
    assert np.isfinite(density.score_samples(NEW_ROWS, NEW_KEYS)).all()


def test_many_fields_are_those_of_the_shared_network_alone():
    rows = np.random.default_rng(0).normal(size=(600, 33))
    density = EntityDensity().partial_fit(rows, np.arange(600) % 20, batch_size=100)
    assert np.isfinite(density.score_samples(rows, np.arange(600) % 20)).all()
    assert np.isfinite(density.contributions(rows[:10], np.arange(10))).all()


def test_no_rows_have_no_densities():
    assert taught().score_samples(np.empty((0, 3)), []).shape == (0,)
    assert taught().contributions(np.empty((0, 3)), []).shape == (0, 3)
    assert EntityDensity().partial_fit(np.empty((0, 3)), []).n_records_ == 0


def test_the_learner_given_is_left_alone():
    given = OSLRAU(min_count=32)
    density = EntityDensity(given).partial_fit(ROWS[:50], KEYS[:50])
    assert given.n_records_ == 0 and density.learner_.n_records_ == 50
    assert density.untrained().n_records_ == 0


def test_parameters_of_the_network_have_its_name():
    density = EntityDensity(OSLRAU()).set_params(learner__min_count=20, max_entities=7)
    assert density.get_params()["learner__min_count"] == 20
    assert repr(density) == "EntityDensity(learner=OSLRAU(min_count=20), max_entities=7)"
