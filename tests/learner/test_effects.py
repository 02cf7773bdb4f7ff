"""What categories do to numbers: one effect after the other, and two categories together."""

import numpy as np
import pytest
from interpreter import needs_compiler
from naive_effects import NaiveEffects
from scipy import integrate
from streams import blame_of, losing

from faust_oslrau.learner import OSLRAU, CategoricalDensity, StreamScorer
from faust_oslrau.learner.categories.effects import Effects
from faust_oslrau.learner.categories.layer import Categories
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
        effects.choose_parents(np.repeat([0, 1], [4, 2]), 2)
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
