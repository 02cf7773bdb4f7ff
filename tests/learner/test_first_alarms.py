"""A young stream raises only so many alarms close together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreter import needs_compiler

from faust_oslrau.learner import OSLRAU, StateError, StreamScorer
from faust_oslrau.learner.scoring.first_alarms import WINDOW, YOUNG, FirstAlarms, most_alarms


@given(
    st.lists(st.integers(0, 2 * YOUNG), max_size=60, unique=True),
    st.integers(1, 2000),
    st.sampled_from([0.001, 0.01]),
)
def test_no_window_of_a_young_stream_has_more_and_all_others_are_alarms(places, step, rate):
    unusual = np.zeros(2 * YOUNG + 1, bool)
    unusual[places] = True
    alarms = FirstAlarms()
    pieces = [
        alarms.choose(unusual[start : start + step], start, rate)
        for start in range(0, len(unusual), step)
    ]
    found = np.concatenate(pieces)
    counts = np.convolve(found, np.ones(WINDOW))
    assert counts[:YOUNG].max() <= most_alarms(rate)
    np.testing.assert_array_equal(found[YOUNG:], unusual[YOUNG:])
    missed = np.flatnonzero(unusual & ~found)
    assert (counts[missed] == most_alarms(rate)).all()
    assert alarms.numbers == []


@needs_compiler("3,000 records")
def test_a_new_regime_of_a_young_stream_is_no_storm_but_its_p_values_are_low():
    rows = np.random.default_rng(0).normal(size=(3000, 3))
    rows[1000:1200] += 40.0
    block = StreamScorer(OSLRAU()).process(rows)
    assert (block.p_value[1000:1200] <= 0.001).mean() > 0.9
    assert block.is_anomaly[1000:1004].all()
    assert block.is_anomaly[1000:1200].sum() == 4
    assert block.is_anomaly.sum() <= 12


@needs_compiler("3,000 records")
def test_the_limit_goes_on_after_a_restart():
    rows = np.random.default_rng(0).normal(size=(1300, 3))
    rows[1000:1200] += 40.0
    whole = StreamScorer(OSLRAU()).process(rows)
    scorer = StreamScorer(OSLRAU())
    scorer.process(rows[:1002])
    copy = StreamScorer.from_bytes(scorer.to_bytes())
    np.testing.assert_array_equal(copy.process(rows[1002:]).is_anomaly, whole.is_anomaly[1002:])


@pytest.mark.parametrize("numbers", [[-1], [YOUNG]])
def test_a_state_that_cannot_be_one_is_refused(numbers):
    with pytest.raises(StateError):
        FirstAlarms().restore(numbers)
