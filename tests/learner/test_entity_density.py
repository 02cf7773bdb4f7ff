"""The density of a record given its entity, as an estimator."""

import functools

import numpy as np
import pytest
from streams import BOUNDARIES
from subjects import WITH_MIXTURES
from test_entities import machines

from faust_oslrau.learner import OSLRAU, EntityDensity, StreamScorer
from faust_oslrau.learner.state import unpack

KEYS, ROWS, LEVELS, SCALES = machines(1, 3000, 30, 3, missing=0.05)


@functools.cache
def taught(n=2000):
    return EntityDensity(OSLRAU(min_count=32)).partial_fit(ROWS[:n], KEYS[:n], batch_size=256)


NEW_ROWS, NEW_KEYS = ROWS[2000:2200], KEYS[2000:2200]


@pytest.mark.parametrize("kind", [OSLRAU, WITH_MIXTURES])
def test_the_density_is_that_of_a_stream_scorer(kind):
    """Of the first record of each entity after a boundary: no later one has changed its entity."""
    scorer, density, compared = StreamScorer(kind(), max_entities=1000), EntityDensity(kind()), 0
    for start, stop in BOUNDARIES:
        rows, keys = ROWS[start:stop], KEYS[start:stop]
        block = scorer.process(rows, keys)
        assert block.held_back == 0, "the guard must let all records pass"
        if start > 0:
            _, first = np.unique(keys, return_index=True)
            found = density.score_samples(rows, keys)
            np.testing.assert_array_equal(found[first], block.log_likelihood[first])
            compared += len(first)
        density.partial_fit(rows, keys)
    assert compared > 100


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


@pytest.mark.parametrize("m", [1, 2])
def test_the_first_mini_batch_may_be_short(m):
    density = EntityDensity().partial_fit(ROWS[:m], KEYS[:m]).partial_fit(ROWS[m:99], KEYS[m:99])
    assert np.isfinite(density.score_samples(NEW_ROWS, NEW_KEYS)).all()


def test_many_fields_are_those_of_the_shared_network_alone():
    rows = np.random.default_rng(0).normal(size=(600, 33))
    density = EntityDensity().partial_fit(rows, np.arange(600) % 20, batch_size=100)
    assert np.isfinite(density.score_samples(rows, np.arange(600) % 20)).all()
    assert np.isfinite(density.contributions(rows[:10], np.arange(10))).all()
    assert unpack(density.to_bytes(), "EntityDensity")[1]["habit_products"].size == 0


def test_the_learner_given_is_left_alone():
    given = OSLRAU(min_count=32)
    density = EntityDensity(given).partial_fit(ROWS[:50], KEYS[:50])
    assert given.n_records_ == 0 and density.learner_.n_records_ == 50
    assert density.untrained().n_records_ == 0


def test_parameters_of_the_network_have_its_name():
    density = EntityDensity(OSLRAU()).set_params(learner__min_count=20, max_entities=7)
    assert density.get_params()["learner__min_count"] == 20
    assert repr(density) == "EntityDensity(learner=OSLRAU(min_count=20), max_entities=7)"
