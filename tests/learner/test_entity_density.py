"""The density of a record given its entity, as an estimator."""

import functools

import numpy as np
import pytest
from streams import clusters
from test_entities import machines

from faust_oslrau.learner import (
    OSLRAU,
    EntityDensity,
    InvalidInputError,
    InvalidParameterError,
    NotFittedError,
    StackedSPN,
    StateError,
    StreamScorer,
)
from faust_oslrau.learner.state import pack, unpack

KEYS, ROWS, LEVELS, SCALES = machines(1, 3000, 30, 3, missing=0.05)


def taught(n=2000, batch_size=256, **parameters):
    density = EntityDensity(OSLRAU(min_count=32), **parameters)
    return density.partial_fit(ROWS[:n], KEYS[:n], batch_size=batch_size)


@functools.cache
def taught_once():
    return taught()


NEW_ROWS, NEW_KEYS = ROWS[2000:2200], KEYS[2000:2200]


@pytest.mark.parametrize("kind", [OSLRAU, StackedSPN])
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


def test_a_query_changes_nothing_and_knows_each_row_alone():
    before = taught_once().to_bytes()
    together = taught_once().score_samples(NEW_ROWS, NEW_KEYS)
    taught_once().contributions(NEW_ROWS, NEW_KEYS)
    assert taught_once().to_bytes() == before
    reverse = taught_once().score_samples(NEW_ROWS[::-1], NEW_KEYS[::-1])
    alone = [taught_once().score_samples(NEW_ROWS[[i]], [NEW_KEYS[i]])[0] for i in range(20)]
    np.testing.assert_array_equal(reverse[::-1], together)
    np.testing.assert_array_equal(alone, together[:20])


def test_what_is_usual_for_another_entity_is_unlikely_and_expected_where_it_is():
    keys, level = [b"machine-3", b"machine-4"], LEVELS[[3, 4]]
    own, other = (
        taught_once().score_samples(level, keys),
        taught_once().score_samples(level[::-1], keys),
    )
    assert (own > other + 5).all()
    mean, deviation = taught_once().expected(np.full((2, 3), np.nan), keys)
    assert (np.abs(mean - level) < SCALES[[3, 4]]).all()
    assert (deviation < 3 * SCALES[[3, 4]]).all()
    profile = taught_once().profile("machine-3")
    assert (np.abs(profile.level - level[0]) < SCALES[3]).all()
    assert taught_once().profile("new") is None and EntityDensity().profile("new") is None


def test_contributions_are_conditional_densities():
    rows = NEW_ROWS[~np.isnan(NEW_ROWS).any(axis=1)][:50]
    keys = np.array(NEW_KEYS)[~np.isnan(NEW_ROWS).any(axis=1)][:50]
    found = taught_once().contributions(rows, keys)
    for v in range(3):
        others = rows.copy()
        others[:, v] = np.nan
        given = taught_once().score_samples(rows, keys) - taught_once().score_samples(others, keys)
        np.testing.assert_allclose(-found[:, v], given, atol=1e-6)
    assert np.isnan(taught_once().contributions([[np.nan, 1.0, 1.0]], ["new"])[0, 0])


def test_an_entity_that_gave_way_is_known_by_its_level():
    density = EntityDensity(max_entities=2, max_former_entities=10)
    rows = np.repeat([[0.0], [50.0], [100.0], [150.0]], 100, axis=0)
    rows += np.random.default_rng(0).normal(size=rows.shape)
    density.partial_fit(rows, np.repeat([0, 1, 2, 3], 100), batch_size=50)
    assert density.n_entities_ == 2
    former, unknown = density.score_samples([[0.0], [0.0]], [0, 9])
    assert former > unknown + 1


def test_mini_batches_in_one_call_equal_one_call_each():
    density = EntityDensity(OSLRAU(min_count=32))
    for start in range(0, 2000, 256):
        stop = min(start + 256, 2000)
        density.partial_fit(ROWS[start:stop], KEYS[start:stop])
    assert density.to_bytes() == taught_once().to_bytes() and density.n_records_ == 2000


@pytest.mark.parametrize("kind", [OSLRAU, StackedSPN])
def test_learning_after_a_round_trip_equals_learning_without_it(kind):
    density = EntityDensity(kind(), max_entities=20)
    for stop in (0, 500, 1000):
        again = EntityDensity.from_bytes(density.to_bytes(), kind)
        assert again.get_params()["max_entities"] == 20 and again.n_records_ == stop
        for model in (density, again):
            model.partial_fit(ROWS[stop : stop + 500], KEYS[stop : stop + 500], batch_size=100)
        assert again.to_bytes() == density.to_bytes()


@pytest.mark.parametrize("m", [1, 2])
def test_the_first_mini_batch_may_be_short(m):
    density = EntityDensity().partial_fit(ROWS[:m], KEYS[:m]).partial_fit(ROWS[m:99], KEYS[m:99])
    assert np.isfinite(density.score_samples(NEW_ROWS, NEW_KEYS)).all()


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_hard_streams_have_finite_densities(scale):
    rows = clusters(0, 600, 4, missing=0.3) * scale
    rows[::7], rows[:, 3] = np.nan, 0.0
    rows[100] = 1e300
    keys = np.arange(600) % 50
    density = EntityDensity().partial_fit(rows, keys, batch_size=64)
    assert np.isfinite(density.score_samples(rows, keys)).all()


def test_many_fields_are_those_of_the_shared_network_alone():
    rows = np.random.default_rng(0).normal(size=(600, 33))
    density = EntityDensity().partial_fit(rows, np.arange(600) % 20, batch_size=100)
    assert np.isfinite(density.score_samples(rows, np.arange(600) % 20)).all()
    assert np.isfinite(density.contributions(rows[:10], np.arange(10))).all()


def test_no_rows_have_no_densities():
    assert taught_once().score_samples(np.empty((0, 3)), []).shape == (0,)
    assert taught_once().contributions(np.empty((0, 3)), []).shape == (0, 3)
    assert EntityDensity().partial_fit(np.empty((0, 3)), []).n_records_ == 0


def test_before_the_first_mini_batch_queries_are_refused():
    for query in (EntityDensity().score_samples, EntityDensity().expected):
        with pytest.raises(NotFittedError, match="call partial_fit first"):
            query(NEW_ROWS, NEW_KEYS)


@pytest.mark.parametrize(
    ("X", "entity", "message"),
    [
        ([1.0, 2.0, 3.0], ["a"], r"X: expected a matrix \(m, d\)"),
        ([[1.0, 2.0]], ["a"], "X: expected 3 columns, got 2"),
        ([[1.0, np.inf, 2.0]], ["a"], "X: expected finite or missing"),
        ([[1.0, 2.0, 3.0]], [], "entity: expected one for each of 1 records"),
        ([[1.0, 2.0, 3.0]], "a b", "entity: expected one for each of 1 records"),
        ([[1.0, 2.0, 3.0]], [2.5], "entity: expected bytes, text, a whole number or None"),
    ],
)
def test_wrong_input_is_refused_and_changes_nothing(X, entity, message):
    before = taught_once().to_bytes()
    for use in (
        taught_once().partial_fit,
        taught_once().score_samples,
        taught_once().contributions,
    ):
        with pytest.raises(InvalidInputError, match=message):
            use(X, entity)
    assert taught_once().to_bytes() == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_entities": 0}, "max_entities = 0: expected at least 1"),
        ({"max_former_entities": -1}, "max_former_entities = -1: expected at least 0"),
        ({"learner": OSLRAU(min_count=0)}, "min_count = 0"),
    ],
)
def test_a_parameter_out_of_range_is_named(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        EntityDensity(**parameters).partial_fit(ROWS[:50], KEYS[:50])


def test_the_learner_given_is_left_alone():
    given = OSLRAU(min_count=32)
    density = EntityDensity(given).partial_fit(ROWS[:50], KEYS[:50])
    assert given.n_records_ == 0 and density.learner_.n_records_ == 50
    assert density.untrained().n_records_ == 0


def test_parameters_of_the_network_have_its_name():
    density = EntityDensity(OSLRAU()).set_params(learner__min_count=20, max_entities=7)
    assert density.get_params()["learner__min_count"] == 20
    assert repr(density) == "EntityDensity(learner=OSLRAU(min_count=20), max_entities=7)"
    with pytest.raises(InvalidParameterError, match="learner__min_count"):
        EntityDensity().set_params(learner__min_count=20)


BROKEN = {
    "entity_levels": lambda a: a[:-1],
    "entity_population": lambda a: -np.abs(a),
    "learner": lambda a: a[:-1],
    "habit_entities": lambda a: a - 1e9,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_state_that_cannot_be_one_is_refused(name):
    values, arrays = unpack(taught_once().to_bytes(), "EntityDensity")
    arrays[name] = BROKEN[name](arrays[name])
    with pytest.raises(StateError):
        EntityDensity.from_bytes(pack("EntityDensity", values, arrays))


@pytest.mark.parametrize(
    "changes", [{"n_fields": 2}, {"n_fields": None}, {"n_records": -1}, {"max_entities": "x"}]
)
def test_a_header_that_cannot_be_one_is_refused(changes):
    values, arrays = unpack(taught_once().to_bytes(), "EntityDensity")
    with pytest.raises(StateError):
        EntityDensity.from_bytes(pack("EntityDensity", values | changes, arrays))
    with pytest.raises(StateError, match="expected the kind"):
        EntityDensity.from_bytes(OSLRAU().to_bytes())
