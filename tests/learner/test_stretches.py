"""Stretches: faults that last, which no single record shows."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples, needs_compiler

from faust_oslrau.learner import OSLRAU, InvalidParameterError, StateError, StreamScorer
from faust_oslrau.learner.history.stretch_alarms import StretchAlarms
from faust_oslrau.learner.history.stretches import Stretches, add_runs, mark_long_runs
from faust_oslrau.learner.scoring.block import StretchScores
from faust_oslrau.learner.state import pack, unpack

RNG = np.random.default_rng(8)
N = 1500
ROWS = RNG.normal(size=(N, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
ROWS[1200:1300] += 2.0
ROWS[700] = 50.0
KEYS = [b"machine-%d" % number for number in RNG.integers(12, size=N)]


def run(cuts, restart=False, entities=False):
    scorer = StreamScorer(
        OSLRAU(), alarm_rate=0.02, stretches=(4, 16), max_entities=10 if entities else None
    )
    blocks = []
    ends = [0, *(cut for cut in np.cumsum(cuts) if cut < N), N]
    for start, stop in pairwise(ends):
        if restart:
            scorer = StreamScorer.from_bytes(scorer.to_bytes())
        keys = KEYS[start:stop] if entities else None
        blocks.append(scorer.process(ROWS[start:stop], keys))
    return scorer, blocks


@pytest.mark.parametrize("entities", [False, True])
@settings(max_examples=examples(15))
@given(cuts=st.lists(st.integers(0, 400), max_size=30), restart=st.booleans())
def test_any_cutting_of_the_stream_and_any_restart_give_the_same_bits(entities, cuts, restart):
    scorer, whole = run([], entities=entities)
    other, pieces = run(cuts, restart, entities)
    for name in ("log_likelihood", "p_value", "is_anomaly"):
        found = np.concatenate([getattr(block, name) for block in pieces])
        assert found.tobytes() == getattr(whole[0], name).tobytes()
    for name in ("p_value", "length"):
        found = np.concatenate([getattr(block.stretch, name) for block in pieces])
        assert found.tobytes() == getattr(whole[0].stretch, name).tobytes()
    assert other.to_bytes() == scorer.to_bytes()


def test_means_are_weighted_averages_of_each_slots_last_scores():
    stretches, scores = Stretches((4, 10)), RNG.normal(size=200)
    scores[[3, 50]] = np.nan, -100.0
    slots, fresh = RNG.integers(3, size=200), np.zeros(200, np.bool_)
    fresh[120] = True
    for part in np.array_split(np.arange(200), 7):
        stretches.take(scores[part], slots[part], fresh[part])
    assert stretches.pending.shape == (200, 2)
    for row in range(200):
        begin = 120 if slots[row] == slots[120] and row >= 120 else 0
        own = [s for s, slot in zip(scores[begin : row + 1], slots[begin : row + 1], strict=True)
               if slot == slots[row] and not math.isnan(s)]  # fmt: skip
        for column, length in enumerate((4, 10)):
            found = stretches.pending[row, column]
            if math.isnan(scores[row]) or len(own) < length:
                assert math.isnan(found)
                continue
            weights = [math.exp(-2.0 * age / length) for age in range(len(own))]
            clipped = [max(score, -8.0) for score in reversed(own)]
            total = sum(w * s for w, s in zip(weights, clipped, strict=True))
            assert found == pytest.approx(total / sum(weights))


@needs_compiler("long streams")
def test_a_small_shift_that_lasts_and_a_stuck_value_are_found_and_the_shift_is_not_learned():
    for fault in ("shift", "stuck"):
        rng = np.random.default_rng(4)
        x = rng.normal(size=(9000, 4))
        if fault == "shift":
            x[8500:8620] += 1.4
        else:
            x[8500:8620] = 0.1 * x[8500:8620]
        scorer = StreamScorer(OSLRAU(), stretches=(8, 32))
        block = scorer.process(x)
        during = slice(8500, 8620)
        alone = StreamScorer(OSLRAU()).process(x)
        assert np.count_nonzero(block.stretch.p_value[during] <= 0.001) > 30, fault
        by_stretch = block.is_anomaly[during] & ~(block.p_value[during] <= 0.001)
        assert 1 <= np.count_nonzero(by_stretch) <= 4, fault
        assert np.count_nonzero(alone.is_anomaly[during]) < 40
        assert set(block.stretch.length[during][60:]) <= {8, 32}
        assert np.count_nonzero(block.stretch.length[during][60:] == 32) > 30
        assert alone.held_back == 0
        if fault == "shift":
            assert block.held_back > 100


@needs_compiler("long streams")
def test_a_shift_that_stays_becomes_usual():
    x = np.random.default_rng(5).normal(size=(14_000, 3))
    x[8000:] += 2.5
    scorer = StreamScorer(OSLRAU(), stretches=(8, 32))
    block = scorer.process(x)
    assert (block.stretch.p_value[8000:8500] <= 0.001).mean() > 0.5
    assert block.is_anomaly[8000:8010].any()
    assert block.is_anomaly[-2000:].mean() < 0.01
    assert scorer.learner.n_records_ > 13_000


@needs_compiler("long streams")
def test_adapt_after_says_whether_a_deviation_is_a_fault_or_a_new_regime():
    x = np.random.default_rng(7).normal(size=(5000, 3))
    x[4000:4450] += 1.5
    end, found = slice(4370, 4450), {}
    for adapt_after in (512, 128):
        scorer = StreamScorer(OSLRAU(), stretches=(8, 32), adapt_after=adapt_after)
        scorer = StreamScorer.from_bytes(scorer.to_bytes())
        found[adapt_after] = scorer.process(x)
    fault, regime = found[512], found[128]
    assert (fault.stretch.p_value[end] < 0.01).all() and fault.held_back > 400
    assert not (regime.stretch.p_value[end] < 0.01).any()
    assert regime.log_likelihood[end].mean() > fault.log_likelihood[end].mean() + 1.0


def test_a_fault_is_a_row_of_unusual_stretches_of_one_slot_that_is_long_enough():
    rng, m, least = np.random.default_rng(9), 400, 2 * 4
    unusual, slots = rng.random(m) < 0.9, rng.integers(3, size=m)
    fresh = rng.random(m) < 0.02
    runs, rows, found = np.zeros(3, np.int64), np.empty((m, 2), np.int64), np.zeros(m, np.bool_)
    add_runs(unusual, slots, fresh, runs, rows)
    mark_long_runs(rows, least, np.zeros(3, np.bool_), found)
    expected = np.zeros(m, np.bool_)
    for slot in range(3):
        run = []
        for row in [*np.flatnonzero(slots == slot), None]:
            if row is None or fresh[row] or not unusual[row]:
                expected[run] = len(run) >= least
                run = []
            if row is not None and unusual[row]:
                run.append(row)
    assert 0 < np.count_nonzero(expected) < np.count_nonzero(unusual)
    assert found.tolist() == expected.tolist()


def in_rows(p_value, length, slots, fresh, limit):
    """Find the alarms of each slot: a stretch is the set of positions of its records."""
    found = np.zeros(len(p_value), np.bool_)
    for slot in set(slots.tolist()):
        position, row, alarmed = 0, set(), 1.0
        for r in np.flatnonzero(slots == slot):
            position += 1
            if fresh[r]:
                position, row = 1, set()
            if not p_value[r] <= limit:
                continue
            records = set(range(position - length[r] + 1, position + 1))
            found[r] = not records & row or p_value[r] <= 0.1 * alarmed
            row = row | records if records & row else records
            alarmed = p_value[r] if found[r] else alarmed
    return found


@settings(max_examples=examples(30))
@given(seed=st.integers(0, 2**32 - 1), often=st.sampled_from([0.02, 0.2, 0.9]))
def test_stretches_that_overlap_are_one_alarm_unless_one_is_much_more_unusual(seed, often):
    rng, m = np.random.default_rng(seed), 300
    p_value = np.where(rng.random(m) < often, 10.0 ** -rng.uniform(2, 5, size=m), 0.5)
    p_value[rng.random(m) < 0.02] = np.nan
    length, slots = rng.choice([4, 16], size=m), rng.integers(3, size=m)
    fresh = rng.random(m) < 0.01
    alarms = StretchAlarms()
    found = []
    for part in np.array_split(np.arange(m), 5):
        stretches = StretchScores(p_value[part], length[part])
        found.append(alarms.choose(stretches, slots[part], fresh[part], 0.01))
        continued = StretchAlarms()
        continued.restore(alarms.state(3))
        alarms = continued
    expected = in_rows(p_value, length, slots, fresh, 0.01)
    assert np.concatenate(found).tolist() == expected.tolist()


@needs_compiler("long streams")
def test_each_fault_has_an_alarm_and_a_fault_that_goes_on_has_no_more_for_it():
    x = np.random.default_rng(12).normal(size=(10_000, 4))
    for start, length in ((8000, 60), (8700, 60), (9300, 400)):
        x[start : start + length] += 1.2
    block = StreamScorer(OSLRAU(), stretches=(8, 32)).process(x)
    by_stretch = block.is_anomaly & ~(block.p_value <= 0.001)
    alarms = [int(by_stretch[start:][:length].sum()) for start, length in
              ((8000, 60), (8700, 60), (9300, 400))]  # fmt: skip
    assert all(1 <= n <= 4 for n in alarms), alarms
    assert np.count_nonzero(block.stretch.p_value[9300:9700] <= 0.001) > 200


@needs_compiler("long streams")
def test_the_rate_of_alarms_stays_near_the_nominal_one():
    x = np.random.default_rng(6).normal(size=(40_000, 3))
    block = StreamScorer(OSLRAU(max_nodes=200), alarm_rate=0.01, stretches=(8, 32)).process(x)
    assert 0.004 < block.is_anomaly[10_000:].mean() < 0.015
    assert 0.005 < (block.stretch.p_value[10_000:] <= 0.01).mean() < 0.02


@needs_compiler("long streams")
def test_a_stream_whose_levels_rise_steadily_raises_no_alarms():
    x = np.random.default_rng(2).normal(size=(6000, 2)) + 0.001 * np.arange(6000)[:, None]
    block = StreamScorer(OSLRAU(), stretches=(8, 32)).process(x)
    assert (block.stretch.p_value[4096:] <= 0.001).mean() < 0.005
    assert block.held_back == 0


@pytest.mark.parametrize("lengths", [(), (1,), (8, 8), (5000,), (2, 3, 4, 5, 6)])
def test_wrong_lengths_are_refused(lengths):
    with pytest.raises(InvalidParameterError, match="stretches: expected"):
        StreamScorer(OSLRAU(), stretches=lengths)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("stretch_means", lambda array: array[:, :1]),
        ("stretch_means", lambda array: -np.abs(array) - 1),
        ("stretch_level", lambda array: np.full_like(array, np.nan)),
        ("stretch_spread", lambda array: 0 * array),
        ("stretch_recent", lambda array: np.full_like(array, np.nan)),
        ("stretch_pending", lambda array: array[1:]),
        ("stretch_records", lambda array: array - 10**6),
        ("stretch_runs", lambda array: array[:0]),
        ("stretch_pending_runs", lambda array: array[1:]),
        ("stretch_pending_runs", lambda array: array + 1),
        ("stretch_since", lambda array: array - 10**6),
        ("stretch_since", lambda array: np.append(array, 0)),
        ("stretch_alarm_p_value", lambda array: 0 * array),
        ("stretch_alarm_p_value", lambda array: np.full_like(array, np.nan)),
    ],
)
def test_a_damaged_state_is_refused(name, change):
    values, arrays = unpack(run([])[0].to_bytes(), "StreamScorer")
    arrays[name] = change(arrays[name])
    with pytest.raises(StateError):
        StreamScorer.from_bytes(pack("StreamScorer", values, arrays))


@pytest.mark.parametrize("value", [0.0, 1e-47])
def test_scores_that_hardly_vary_at_first_leave_a_state_that_can_be_restored(value):
    """Beside the spread of 1 before any record, that of such scores is lost in rounding."""
    stretches, again = Stretches((2,)), Stretches((2,))
    stretches.pending = np.array([[0.0], [value], [2.0 * value]])
    stretches.update(np.ones(3, np.bool_))
    again.restore({**stretches.state(0), "stretch_pending": np.empty((0, 1))}, 0)
    assert np.isfinite(again._usual.score(np.array([[-1.0]]))[0]).all()


def test_without_stretches_nothing_of_them_is_there():
    scorer = StreamScorer(OSLRAU())
    assert scorer.process(ROWS).stretch is None
    values, arrays = unpack(scorer.to_bytes(), "StreamScorer")
    assert not any("stretch" in name for name in [*values, *arrays])
