"""History: the density of a record given the running means of its fields."""

import math

import numpy as np
import pytest
from interpreter import needs_compiler
from naive_history import NaiveMeans
from streams import autoregression

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.history.layer import History

RNG = np.random.default_rng(3)
N = 1500
NOISE = RNG.normal(size=(N, 2))
ROWS = autoregression(NOISE, 0.9)
ROWS[RNG.random(ROWS.shape) < 0.03] = np.nan
ROWS[:3] = NOISE[:3]
ROWS[700] = [60.0, 0.0]
TIMES = 1_000 * np.cumsum(RNG.integers(0, 20, size=N))


@pytest.mark.parametrize("centred", [False, True])
def test_running_means_are_those_of_the_oracle(centred):
    history, spans = History(("10", "90s"), centred=centred), [(10.0, False), (90.0, True)]
    oracle = NaiveMeans(spans, centred)
    slots = RNG.integers(3, size=300)
    times = np.where(np.arange(300) % 9 == 4, -1, TIMES[:300])
    times[100:105] = times[100:105][::-1]
    for start in range(0, 300, 50):
        part = slice(start, start + 50)
        rows, spread = ROWS[part], history.state(3)["history_spread"].copy()
        if spread.shape[1] == 0:
            spread = np.full((2, 2), np.inf)
        found = history.take(rows, slots[part], np.zeros(50, np.bool_), times[part])
        expected = [
            oracle.process(slot, row, time, spread)
            for slot, row, time in zip(slots[part], rows, times[part], strict=True)
        ]
        np.testing.assert_array_equal(found[:, :2], rows)
        np.testing.assert_allclose(found[:, 2:], np.reshape(expected, (50, 4)), rtol=1e-9)
        history.update(found, -1)


def test_a_new_entity_in_a_slot_knows_nothing_of_the_one_before():
    history = History(("5",), centred=True)
    first = history.take(
        np.array([[1.0], [3.0]]), np.arange(2), np.ones(2, np.bool_), np.full(2, -1)
    )
    assert np.isnan(first[:, 1]).all()  # nor does any other
    history.update(np.array([[1.0, 3.0]]), -1)
    rows, fresh = np.full((4, 1), 8.0), np.array([True, False, True, False])
    found = history.take(rows, np.zeros(4, np.int64), fresh, np.full(4, -1))
    assert found[:, 1].tolist() == [0.0, 8.0, 0.0, 8.0]


@needs_compiler("long streams")
def test_an_autoregression_is_nearly_as_likely_as_it_can_be():
    """x[t] = 0.95 x[t-1] + e has the entropy of e given the past, and a far larger one without."""
    x = autoregression(np.random.default_rng(1).normal(size=(12_000, 2)), 0.95)
    entropy = 0.5 * math.log(2 * math.pi * math.e)
    alone, given_past = (
        StreamScorer(OSLRAU(), history=history).process(x).log_likelihood[2000:].mean() / 2
        for history in (None, ("1", "3"))
    )
    marginal = entropy - 0.5 * math.log(1 - 0.95**2)
    assert alone == pytest.approx(-marginal, abs=0.1)
    assert given_past == pytest.approx(-entropy, abs=0.1)


def test_huge_values_leave_the_means_finite():
    history = History(("2",))
    rows = np.array([[1e308], [-1e308], [1e308], [0.0], [1.0]])
    found = history.take(rows, np.zeros(5, np.int64), np.zeros(5, np.bool_), np.full(5, -1))
    assert not np.isinf(found).any() and np.isfinite(found[1:]).all()


WRONG = {"ahead": [700], "far ahead for a while": [*range(700, 712)], "unknown": [700]}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_time_stamps_spoil_no_mean_over_time_for_long(wrong):
    number = np.arange(2 * N)
    rows, times = np.tile(NOISE, (2, 1)), 1_700_000_000_000 + 10_000 * number
    rows[900:] += 5.0
    odd = times.copy()
    odd[WRONG[wrong]] = -1 if wrong == "unknown" else times[WRONG[wrong]] + 10**12
    found = []
    for stamps in (times, odd):
        scorer = StreamScorer(OSLRAU(), history=("10m",))
        scorer.process(rows, places=np.column_stack([number, stamps]))
        found.append(scorer._state.history._means[0, 0, :, 0])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_scores_do_not_depend_on_blocks_where_time_stamps_jump_by_days():
    rng, n = np.random.default_rng(7), 400
    rows, days = rng.normal(size=(n, 2)), rng.permutation(n)
    places = np.column_stack([np.arange(n), 86_400_000 * days])
    whole, parts = (StreamScorer(OSLRAU(), history=("30m",)) for _ in range(2))
    whole.process(rows, None, places)
    for at in np.array_split(np.arange(n), 9):
        parts.process(rows[at], None, places[at])
    assert parts.to_bytes() == whole.to_bytes()
