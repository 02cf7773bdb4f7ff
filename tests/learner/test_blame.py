"""The fields to blame: one, several at once, and a relation that is broken."""

import functools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from interpreter import examples, needs_compiler
from streams import blame_of

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.scoring.blame import Blame, blame
from faust_oslrau.learner.scoring.incident import MergedBlame
from faust_oslrau.learner.scoring.wrong_fields import compare_without, excess_alone

D = 6


def correlated(n, seed):
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(0).normal(size=(2, D)) + 0.5
    return rng.normal(size=(n, 2)) @ loadings + 0.3 * rng.normal(size=(n, D))


TRAINED = correlated(12_000, 1)
ROWS = correlated(300, 2)
SCALE = TRAINED.std(axis=0)


LEARNERS = {
    "model": OSLRAU(),
    "gaussian": OSLRAU(n_init_components=1, corr_threshold=1.0),
    "mixtures": OSLRAU(mixtures=True),
}


@functools.cache
def taught(learner):
    return LEARNERS[learner].partial_fit(TRAINED, batch_size=256)


@pytest.fixture(scope="module")
def model():
    return taught("model")


def blame_above(model, rows, limit, stuck=None):
    alone = excess_alone(rows, TRAINED[:200])
    return blame(model, rows, model.score_samples(rows), alone, lambda s: s > limit, stuck)


def blamed(model, rows):
    """Return which rows are clearly unusual, and their blame."""
    limit = np.quantile(model.score_samples(TRAINED), 0.001)
    clear = model.score_samples(rows) < limit
    return clear, blame_above(model, rows[clear], limit)


def wrong_fields(found):
    """Return the fields to blame as a mask (k, d)."""
    mask = np.zeros(found.order.shape, bool)
    for row, (order, n) in enumerate(zip(found.order, found.n_blamed, strict=True)):
        mask[row, order[:n]] = True
    return mask


def some_fields(k, seed=5):
    rng = np.random.default_rng(seed)
    mask = np.zeros(ROWS.shape, bool)
    for row in mask:
        row[rng.choice(D, k, replace=False)] = True
    return mask


def shifted(mask, size):
    sign = np.random.default_rng(3).choice([-1.0, 1.0], mask.shape)
    return ROWS + mask * size * SCALE * sign


@needs_compiler("many rounds of blame")
@pytest.mark.parametrize("learner", ["model", "mixtures"])
@pytest.mark.parametrize(("k", "size"), [(1, 8.0), (2, 8.0), (3, 8.0), (5, 12.0)])
def test_exactly_the_wrong_fields_are_blamed_and_expected_as_they_were(k, size, learner):
    mask = some_fields(k)
    clear, found = blamed(taught(learner), shifted(mask, size))
    assert clear.all()
    assert (wrong_fields(found) == mask).all(axis=1).mean() >= 0.95
    error = np.abs(found.expected - ROWS)[mask]
    assert (error < 3 * found.deviation[mask]).mean() >= 0.97


@needs_compiler("many rounds of blame")
def test_a_field_that_no_longer_follows_the_others_is_blamed_though_its_value_is_usual(model):
    rows = ROWS.copy()
    rows[:, 2] = correlated(300, 6)[:, 2]
    clear, found = blamed(model, rows)
    assert clear.sum() > 50
    assert (found.order[:, 0] == 2).mean() >= 0.9


@needs_compiler("many rounds of blame")
@pytest.mark.parametrize("learner", ["model", "gaussian"])
def test_blamed_fields_are_expected_from_all_that_are_not_to_blame(learner):
    model, rows = taught(learner), shifted(some_fields(3), 5.0)
    found = blame_above(model, rows, np.quantile(model.score_samples(TRAINED), 0.001))
    mask = wrong_fields(found)
    alone = compare_without(model, rows, mask)
    np.testing.assert_allclose(found.expected[mask], alone.expected[mask], rtol=1e-9)
    np.testing.assert_allclose(found.deviation[mask], alone.deviation[mask], rtol=1e-9)


@needs_compiler("many rounds of blame")
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_what_is_blamed_does_not_depend_on_blamed_values_or_on_other_records(model, data):
    wrong = data.draw(st.sets(st.integers(0, D - 1), min_size=1, max_size=3))
    missing = data.draw(st.sets(st.integers(0, D - 1), max_size=2)) - wrong
    sizes = data.draw(st.lists(st.sampled_from([-1e6, -30.0, 30.0, 1e6]), min_size=6, max_size=6))
    row = ROWS[data.draw(st.integers(0, len(ROWS) - 1))].copy()
    first, second = row.copy(), row.copy()
    for field in wrong:
        first[field] = 40 * SCALE[field] + sizes[field]
        second[field] = -60 * SCALE[field] - sizes[field]
    first[list(missing)], second[list(missing)] = np.nan, np.nan
    both = blame_above(model, np.array([first, second]), -15.0)
    alone = blame_above(model, first[None], -15.0)
    for together, single in zip(both, alone, strict=True):
        assert together[:1].tobytes() == single.tobytes()
    mask = wrong_fields(both)
    assert not np.isnan(both.value[mask]).any()
    for name in ("nats", "usual", "expected", "deviation"):
        assert np.isfinite(getattr(both, name)[mask]).all()
        assert np.isnan(getattr(both, name)[~mask]).all()
    assume((mask[0] == mask[1]).all())
    np.testing.assert_allclose(both.expected[0], both.expected[1], rtol=1e-9)
    np.testing.assert_allclose(both.deviation[0], both.deviation[1], rtol=1e-9)


def test_missing_fields_come_last_and_are_not_to_blame(model):
    rows = ROWS[:5].copy()
    rows[:, 1] = np.nan
    rows[:, 3] += 30 * SCALE[3]
    found = blame_above(model, rows, -15.0)
    assert (found.order[:, 0] == 3).all() and (found.order[:, -1] == 1).all()
    assert (found.n_blamed == 1).all() and np.isfinite(found.expected[:, 3]).all()
    assert sorted(found.order[0]) == list(range(D))


@pytest.mark.parametrize("size", [1e12, 1e200])
def test_a_value_beyond_all_measure_is_blamed_alone(model, size):
    rows = ROWS[:100].copy()
    rows[:, 3] = size
    _, found = blamed(model, rows)
    assert (found.order[:, 0] == 3).all()
    assert (found.n_blamed == 1).mean() >= 0.95


def test_what_is_alone_or_wrong_altogether_is_to_blame_altogether(model):
    one = np.full(D, np.nan)
    one[4] = 1e6
    found = blame_above(model, np.array([one, 100 * SCALE * [1, -1, 1, -1, 1, -1]]), -10.0)
    assert found.n_blamed.tolist() == [1, D] and found.order[0, 0] == 4


def test_stuck_fields_are_blamed_however_usual_their_values_are(model):
    mask = np.zeros((20, D), bool)
    mask[:, 4], mask[10:, 2] = True, True
    found = blame_above(model, ROWS[:20], -1e6, np.where(mask, 13.0, 0.0))
    assert (wrong_fields(found) == mask).all()
    assert np.isfinite(found.nats[mask]).all() and np.isnan(found.nats[~mask]).all()
    nats, expected, deviation = (column[:10, 4] for column in model.given_others(ROWS[:10]))
    np.testing.assert_allclose(found.nats[:10, 4], nats + 13.0)
    np.testing.assert_allclose(found.expected[:10, 4], expected)
    np.testing.assert_allclose(found.deviation[:10, 4], deviation)
    without = np.where(mask, np.nan, ROWS[:20])[10:]  # nothing is expected by a stuck field
    _, expected, deviation = model.given_others(without)
    np.testing.assert_allclose(found.expected[10:][mask[10:]], expected[mask[10:]])
    np.testing.assert_allclose(found.deviation[10:][mask[10:]], deviation[mask[10:]])


def test_a_value_that_is_far_off_is_blamed_beside_a_stuck_field(model):
    rows = ROWS[:20].copy()
    rows[:, 1] += 30 * SCALE[1]
    stuck = np.zeros(rows.shape)
    stuck[:, 4] = 13.0
    found = blame_above(model, rows, -15.0, stuck)
    assert (wrong_fields(found) == np.isin(np.arange(D), [1, 4])).all()


def test_an_incident_blames_the_worst_field_though_its_values_are_as_good_as_usual():
    numbers = np.array([[np.nan, -0.3, np.nan]])
    none = np.full((1, 3), np.nan)
    each = Blame(
        np.array([[1, 0, 2]]), np.array([1]), none, numbers, 0 * numbers, none, none, none > 0
    )
    merged = MergedBlame()
    merged.add(each, 0)
    assert merged.mean().n_blamed[0] == 1 and merged.mean().order[0, 0] == 1
    assert MergedBlame().mean().n_blamed[0] == 0


@needs_compiler("thousands of records")
def test_an_expectation_outside_the_values_so_far_is_marked():
    rng = np.random.default_rng(8)
    load = rng.uniform(size=(5000, 1))
    rows = load * [1.0, 2.0, -1.0] + 0.01 * rng.normal(size=(5000, 3))
    rows[rng.random((5000, 3)) < 0.02] = np.nan
    rows[4800] = [0.5, 1.0, -9.0]  # not learned, so it does not count
    rows[4900] = [1.1, 2.2, 9.0]  # the last should be near -1.1, below all before
    rows[4950] = [0.5, 1.0, 9.0]
    block = StreamScorer(OSLRAU()).process(rows)
    (far, of_far), (near, of_near) = (blame_of(block, row) for row in (4900, 4950))
    assert far == near == [2]
    assert of_far.expected[2] < np.nanmin(np.delete(rows[:4900, 2], 4800))
    assert of_far.extrapolated[2] and not of_near.extrapolated[2]
