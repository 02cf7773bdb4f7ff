"""Entities: scores by what is usual for a record's own device, customer or service."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_entities import NaiveLevels

from faust_oslrau.learner import OSLRAU, EntityDensity, StreamScorer
from faust_oslrau.learner.entities import levels, population
from faust_oslrau.learner.entities.levels import to_gaussian
from faust_oslrau.learner.entities.roster import FormerEntities, Roster
from faust_oslrau.learner.state import unpack


def machines(seed, n, k, d, missing=0.0, level=5.0, spread=0.7):
    """Records of ``k`` machines with levels and scales of their own: keys, rows, levels, scales."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(d) + 0.5 * rng.normal(size=(d, d))
    centre, scale = level * rng.normal(size=(k, d)), np.exp(spread * rng.normal(size=(k, d)))
    of = rng.integers(k, size=n)
    rows = centre[of] + scale[of] * (rng.normal(size=(n, d)) @ mixing.T)
    rows[rng.random(rows.shape) < missing] = np.nan
    return [b"machine-%d" % at for at in of], rows, centre, scale * np.sqrt((mixing**2).sum(axis=1))


KEYS, ROWS, LEVELS, SCALES = machines(1, 1500, 30, 3, missing=0.05)


def run(keys=KEYS, rows=ROWS, max_entities=20, **parameters):
    scorer = StreamScorer(OSLRAU(min_count=32), max_entities=max_entities, **parameters)
    return scorer, scorer.process(rows, keys)


def test_predictions_are_those_of_the_oracle():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(400, 2)) * [1.0, 30.0] + rng.normal(size=(400, 1))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[::50, 0] = 1e6
    of = rng.integers(7, size=400)
    like = population.first_population(2)
    like[[levels.M0, levels.B0, levels.NU, levels.TAU2, levels.MEMORY]] = (
        [[0.5, -1.0], [2.0, 0.3], [5.0, 0.8], [1.5, 400.0], [1000.0, 20.0]]
    )  # fmt: skip
    U, jacobian, units = np.empty((400, 2)), np.empty(400), np.empty((400, 2, 3))
    means, statistics = np.zeros((7, 2)), np.zeros((7, 2, 2), np.float32)
    reference = np.array([[0.0, 0.0], [1.0, 1.0]])
    fresh = np.zeros(400, np.bool_)
    levels.standardise(rows, of, fresh, means, statistics, like, reference, U, jacobian, units)
    naive = NaiveLevels(like.T.tolist())
    expected = [naive.process(key, row) for key, row in zip(of, rows.tolist(), strict=True)]
    np.testing.assert_allclose(units, expected, rtol=1e-4)
    for r in range(400):
        slopes = [
            to_gaussian((rows[r, v] - units[r, v, 0]) / units[r, v, 1], units[r, v, 2])
            for v in range(2)
        ]
        total = sum(
            slope - np.log(units[r, v, 1])
            for v, (_, slope) in enumerate(slopes)
            if not np.isnan(rows[r, v])
        )
        assert jacobian[r] == pytest.approx(total, rel=1e-12, abs=1e-12)


def test_expected_values_stay_in_the_fields_own_units_with_transforms():
    rows = np.exp(ROWS / 5)
    scorer, _ = run(rows=rows, transforms=dict.fromkeys(range(3), "log"), max_entities=30)
    odd = np.exp(LEVELS[4] / 5) * [1.0, 1.0, 1e6]
    block = scorer.process([odd], [b"machine-4"])
    assert block.is_anomaly[0] and block.blame.order[0, 0] == 2
    assert np.log(block.blame.expected[0, 2]) == pytest.approx(LEVELS[4, 2] / 5, abs=1.0)


def alternating(max_entities, **parameters):
    """Three entities far apart, the third of which is away for the last 60 records."""
    keys = [[b"a", b"b", b"c"][i % 3 if i < 900 else i % 2] for i in range(960)]
    rows = 100.0 * np.array([[b"abc".index(key)] for key in keys]) + ROWS[:960, :1]
    return run(keys, rows, max_entities=max_entities, **parameters)[0]


def test_an_entity_that_comes_back_has_its_level_unless_it_is_forgotten():
    held, former, gone = alternating(3), alternating(2), alternating(2, max_former_entities=0)
    assert (held.n_entities, held.n_evicted, held.n_former_entities) == (3, 0, 0)
    assert (former.n_entities, former.n_evicted, former.n_former_entities) == (2, 900, 1)
    assert (gone.n_entities, gone.n_evicted, gone.n_former_entities) == (2, 900, 0)
    known, back, new = (
        scorer.process([[200.0]], [b"c"]).log_likelihood[0] for scorer in (held, former, gone)
    )
    assert back > new + 0.5 and back > known - 1.0
    assert former.n_former_entities == 1  # another one gave way


def test_the_entity_that_gave_way_first_is_forgotten_first():
    former = FormerEntities(2)
    for number, key in enumerate([b"a", b"b", None]):
        former.add(key, np.array([number]), np.zeros((1, 2), np.float32))
    assert former.take(b"a") is None
    assert former.take(None).means.tolist() == [2.0] and len(former) == 1


def test_entities_are_searched_by_a_part_of_their_name():
    roster = Roster(10)
    long = b"a saw with a very long name, " + b"x" * 40
    roster.take([b"Saw-10", None, b"saw-1", b"", b"mill", long, b"saw-11"])
    assert roster.search(b"saw", 10) == [b"Saw-10", b"saw-1", b"saw-11"]
    assert roster.search(b"saw-1", 10) == [b"saw-1", b"Saw-10", b"saw-11"]
    assert roster.search(b"saw", 2) == [b"Saw-10", b"saw-1"]
    assert roster.search(b"", 10) == [b"Saw-10", b"saw-1", b"mill", b"saw-11"]
    assert roster.search(long, 10) == [long]
    assert roster.search(b"lathe", 10) == []


@given(
    pieces=st.lists(st.lists(st.integers(0, 12).map(lambda key: b"%d" % key)), max_size=8),
    limit=st.integers(1, 9),
)
def test_the_roster_is_the_one_of_a_dict_in_the_order_of_use(pieces, limit):
    roster, slots = Roster(limit), OrderedDict()
    for piece in pieces:
        found, fresh = roster.take(piece)
        for row, key in enumerate(piece):
            assert fresh[row] == (key not in slots)
            if key not in slots:
                slots[key] = len(slots) if len(slots) < limit else slots.popitem(last=False)[1]
            slots.move_to_end(key)
            assert found[row] == slots[key]


def test_every_key_is_an_entity_of_its_own():
    long = b"x" * 1_000_000
    keys = [None, b"", b"\xff\xfe", b"x" * 31, b"x" * 32, b"x" * 33, long, long + b"x"]
    roster = Roster(100)
    assert roster.take(keys)[0].tolist() == list(range(8))
    again = Roster(100)
    again.restore(roster.state())
    assert again.take(keys)[0].tolist() == list(range(8))
    assert sum(len(array.tobytes()) for array in roster.state().values()) < 400


def test_text_and_whole_numbers_name_the_entity_of_their_utf8():
    digits = [key.split(b"-")[1] for key in KEYS]
    of_bytes, of_texts, of_numbers = (
        run(keys)[1].log_likelihood.tobytes()
        for keys in (digits, [each.decode() for each in digits], np.array(digits).astype(int))
    )
    assert of_bytes == of_texts == of_numbers


def test_an_entity_of_16_fields_takes_little_state():
    rows = np.random.default_rng(10).normal(size=(600, 16))
    sizes = [
        len(run([b"machine-%07d" % (i % k) for i in range(600)], rows, 600)[0].to_bytes())
        for k in (100, 600)
    ]
    of_followed = 156 * 16 * 5 * 8  # the first 256 entities tell how long levels are remembered
    of_first = 360 * 16 * 8  # kinds are found anew in the first records so far
    of_entities = sizes[1] - sizes[0] - of_followed - of_first
    assert of_entities / 500 < 1200  # bytes, as docs/entities.md says


def test_a_frozen_scorer_goes_on_knowing_its_entities_better():
    scorer, _ = run(max_entities=50)
    before = scorer.learner.to_bytes()
    scorer.learning = False
    rows = np.full((600, 3), 40.0) + np.random.default_rng(2).normal(size=(600, 3))
    block = scorer.process(rows, [b"new"] * 600)
    assert scorer.learner.to_bytes() == before
    assert block.log_likelihood[-100:].mean() > block.log_likelihood[:10].mean() + 1


def test_what_is_usual_for_another_entity_is_unlikely_and_expected_where_it_is():
    density = EntityDensity(OSLRAU(min_count=32)).partial_fit(ROWS, KEYS, batch_size=256)
    keys, level = [b"machine-3", b"machine-4"], LEVELS[[3, 4]]
    own, other = (density.score_samples(rows, keys) for rows in (level, level[::-1]))
    assert (own > other + 5).all()
    mean, deviation = density.expected(np.full((2, 3), np.nan), keys)
    assert (np.abs(mean - level) < SCALES[[3, 4]]).all()
    assert (deviation < 3 * SCALES[[3, 4]]).all()
    profile = density.profile("machine-3")
    assert (np.abs(profile.level - level[0]) < SCALES[3]).all()
    assert density.profile("new") is None and EntityDensity().profile("new") is None


@pytest.mark.parametrize("m", [1, 2])
def test_the_first_mini_batch_may_be_short(m):
    density = EntityDensity().partial_fit(ROWS[:m], KEYS[:m]).partial_fit(ROWS[m:99], KEYS[m:99])
    assert np.isfinite(density.score_samples(ROWS, KEYS)).all()


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
