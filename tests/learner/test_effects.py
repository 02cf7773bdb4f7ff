"""What categories do to numbers, one effect after the other; and records that lack a category."""

import functools
import math

import numpy as np
import pytest
from interpreter import needs_compiler
from naive_effects import NaiveEffects
from scipy import integrate
from streams import blame_of, learned_by, losing

from faust_oslrau.learner import OSLRAU, CategoricalDensity, StreamScorer
from faust_oslrau.learner.categories.effects import Effects
from faust_oslrau.learner.categories.layer import Categories
from faust_oslrau.learner.categories.missing import MOST
from faust_oslrau.learner.categories.values import MISSING

N = 4000


def records(seed, together=0.0, n=N):
    """Rows of a latency, a service, whether it is cached, and a region that adds little.

    Services and the cache add up, but for what both do ``together``.
    """
    rng = np.random.default_rng(seed)
    of = np.column_stack([rng.integers(size, size=n) for size in (4, 2, 3)])
    both = together * rng.normal(size=(4, 2))
    level = np.array([0.0, 9.0, -4.0, 5.0])[of[:, 0]] - 6.0 * of[:, 1] + both[of[:, 0], of[:, 1]]
    return np.column_stack([level + 0.3 * of[:, 2] + rng.normal(size=n), of])


@pytest.mark.parametrize("together", [0.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_units_are_those_of_the_oracle(seed, together):
    rows, layer, naive = records(seed, together, 1200), Categories(3), NaiveEffects(3)
    for start in range(0, len(rows), 80):
        batch = rows[start : start + 80]
        codes = [tuple(row) for row in batch[:, 1:].tolist()]
        found = layer.take(batch)
        np.testing.assert_allclose(
            found.units[:, 0], [naive.unit(row) for row in codes], rtol=1e-7, atol=1e-7
        )
        layer.end_batch(None, learning=True)
        naive.learn(batch[:, 0].tolist(), codes)
    assert [effect.fields is not None for effect in naive.effects] == [
        True, True, together == 0.0 or naive.effects[2].fields is not None, together > 0.0
    ]  # fmt: skip


@needs_compiler("half a million records")
@pytest.mark.parametrize(("together", "lost"), [(0.0, 0.0), (4.0, 0.0), (4.0, 0.3)])
def test_the_density_integrates_to_one(together, lost):
    density = CategoricalDensity(n_categories=3)
    density.partial_fit(losing(records(0, together, 1000), lost), batch_size=128)
    at = np.linspace(-80.0, 80.0, 8001)
    values = [[*range(size), 99] for size in (4, 2, 3)]  # 99 was never seen
    every = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, 3)
    total = sum(
        integrate.trapezoid(
            np.exp(density.score_samples(np.column_stack([at, np.tile(of, (len(at), 1))]))), at
        )
        for of in every
    )
    assert total == pytest.approx(1.0, abs=1e-3)


@needs_compiler("a whole stream")
@pytest.mark.parametrize("together", [0.0, 4.0])
def test_a_number_that_is_usual_for_each_category_alone_is_an_anomaly(together):
    rows = records(1, together)
    services, cached = rows[:, 1] == 1, rows[:, 2] == 1
    miss, hit = (np.median(rows[services & of, 0]) for of in (~cached, cached))
    rows[3500] = [miss, 1, 1, 1]
    blamed, blame = blame_of(
        StreamScorer(OSLRAU(), alarm_rate=0.01, n_categories=3).process(rows), 3500
    )
    assert blamed == [0]
    assert blame.expected[0] == pytest.approx(hit, abs=0.5)


def test_of_a_value_that_takes_the_place_of_another_nothing_is_known():
    rows, effects = records(0, together=4.0), Effects(np.repeat([0, 1], [4, 2]), 1)
    slots = rows[:, 1:3].astype(int) + np.array([0, 4])
    for start in range(0, N, 250):
        some = slice(start, start + 250)
        effects.learn(rows[some, :1], slots[some], np.empty(0, int), settled=False)
        effects.choose_parents(np.repeat([0, 1], [4, 2]), np.ones(2, bool))
        effects.derive(np.repeat([0, 1], [4, 2]))
    told, unknown = effects.units(np.array([[2, 5], [MISSING, 5]]))
    assert abs(told - unknown).max() > 1.0
    effects.make_room(6, np.array([2]))
    effects.learn(rows[:0, :1], slots[:0], np.array([2]), settled=False)
    effects.derive(np.repeat([0, 1], [4, 2]))
    told, unknown = effects.units(np.array([[2, 5], [MISSING, 5]]))
    np.testing.assert_array_equal(told, unknown)


@needs_compiler("a dozen streams")
@pytest.mark.parametrize("seed", range(6))
def test_effects_of_numbers_that_do_not_depend_on_categories_come_and_go(seed):
    rng = np.random.default_rng(seed)
    categories = [rng.integers(2 + f, size=8000) for f in range(3)]
    rows = np.column_stack([rng.standard_t(1.5, (8000, 2)), *categories])
    layer = Categories(3)
    for some in np.array_split(rows, 80):
        assert np.isfinite(layer.take(some).units).all()
        layer.end_batch(2000.0, learning=True)


def test_fields_depend_on_the_categories_that_tell_of_them():
    rows = records(0)
    rows[:, 3] = np.where(np.arange(N) % 10 < 9, rows[:, 1] % 2, rows[:, 3])
    scorer = StreamScorer(OSLRAU(), n_categories=3)
    assert scorer.dependences(["latency", "service", "cached", "region"]) == {}
    scorer.process(rows)
    found = scorer.dependences(["latency", "service", "cached", "region"])
    assert found["latency"][:2] == ["service", "cached"]
    assert found.get("region") == ["service"] or found.get("service") == ["region"]
    alone = StreamScorer(OSLRAU(), n_categories=3)
    alone.process(rows[:, 1:])
    assert {*alone.dependences(["service", "cached", "region"])} <= {"service", "region"}


VALUES = [0, 1, 2, 3, 99], [0, 1, 99], [0, 1, 2, 99]
"""Those of a service, a cache and a region; 99 was never seen."""

LACKS = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)]
"""The categories that a record lacks."""


@functools.cache
def taught(together=0.0, share=0.0):
    rows = losing(records(0, together, 2000), share)
    rows = np.insert(rows, 1, 0.5 * rows[:, 0] + np.random.default_rng(1).normal(size=2000), axis=1)
    return CategoricalDensity(n_categories=3).partial_fit(rows, batch_size=128), rows


def summed(score, row, fields):
    """Return the log-density of one row by a sum over all values of some fields."""
    rows = [list(row)]
    for f in fields:
        rows = [[*of[: 2 + f], value, *of[3 + f :]] for of in rows for value in VALUES[f]]
    return math.log(math.fsum(math.exp(log_p) for log_p in score(rows).tolist()))


@pytest.mark.parametrize("lacks", LACKS)
@pytest.mark.parametrize("together", [0.0, 4.0])
def test_the_density_is_the_sum_over_all_values(together, lacks):
    density, rows = taught(together)
    rows = rows[:25].copy()
    rows[:, [2 + f for f in lacks]] = np.nan
    rows[:5, 0] = np.nan
    rows[3:8, 1] = np.nan  # of two records no number is left
    expected = [summed(density.score_samples, row, lacks) for row in rows.tolist()]
    np.testing.assert_allclose(density.score_samples(rows), expected, rtol=1e-9)


def test_of_more_combinations_than_are_added_up_exactly_the_sum_is_near():
    rng, n = np.random.default_rng(0), 8000
    of = rng.integers([40, 12], size=(n, 2))
    level = [rng.normal(0.0, spread, size) for spread, size in ((2.0, 40), (6.0, 12))]
    number = level[0][of[:, 0]] + level[1][of[:, 1]] + rng.normal(size=n)
    density = CategoricalDensity(n_categories=2)
    density.partial_fit(np.column_stack([number, of]), batch_size=256)
    every = np.stack(np.meshgrid([*range(40), 99], [*range(12), 99]), axis=-1).reshape(-1, 2)
    assert len(every) > MOST
    each = [np.column_stack([np.full(len(every), x), every]) for x in number[:30]]
    expected = [np.logaddexp.reduce(density.score_samples(rows)) for rows in each]
    lost = np.column_stack([number[:30], np.full((30, 2), np.nan)])
    np.testing.assert_allclose(density.score_samples(lost), expected, atol=0.1)


def test_what_is_missing_does_not_blur_what_other_categories_do():
    layers = [learned_by(Categories(3), losing(records(0), share), 250) for share in (0.0, 0.4)]
    whole, lost = (layer.average(records(1, n=200)).units for layer in layers)
    np.testing.assert_allclose(lost, whole, atol=0.3)


def test_values_that_are_not_sure_stay_missing_where_the_network_cannot_be_asked():
    rng = np.random.default_rng(0)
    of = rng.integers(2, size=(4000, 2))
    rows = np.column_stack([3.0 * of[:, 0] + rng.normal(size=4000), of])
    layer = learned_by(Categories(2), rows, 250)
    found = layer.average(np.array([[1.5, np.nan, 1], [6.0, np.nan, 1], [np.nan, np.nan, 1]]))
    whole = layer.average(np.array([[6.0, 1, 1]]))
    assert found.units[0].tolist() == found.units[2].tolist() != found.units[1].tolist()
    assert found.log_probability[0] == found.log_probability[2]
    assert found.units[1].tolist() == whole.units[0].tolist()
    assert found.log_probability[1] == pytest.approx(whole.log_probability[0], abs=0.1)


@needs_compiler("whole streams")
def test_records_without_the_field_are_scored_no_worse_than_if_none_had_it():
    rows = records(0, n=8000)
    gone = losing(rows, 0.3)
    late = np.isnan(gone[:, 1]) & (np.arange(8000) > 2000)
    some, none = (
        StreamScorer(OSLRAU(), n_categories=c).process(X).log_likelihood[late].mean()
        for X, c in [(gone, 3), (np.delete(rows, 1, axis=1), 2)]
    )
    assert some > none
