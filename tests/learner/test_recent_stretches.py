"""Recent stretches are held against later ones by scores of their time and in the units of now."""

import numpy as np
import pytest
from interpreter import needs_compiler
from streams import switching

from faust_oslrau.learner import OSLRAU, StackedSPN, StreamScorer
from faust_oslrau.learner.history.stretches import Stretches

LENGTHS = (8, 32)


def taken(stretches, scores):
    m = len(scores)
    found = stretches.take(scores, np.zeros(m, np.int64), np.zeros(m, np.bool_))
    stretches.update(np.ones(m, np.bool_))
    return found.p_value


def known(scores):
    stretches = Stretches(LENGTHS)
    for batch in np.split(scores, len(scores) // 250):
        taken(stretches, batch)
    return stretches


def last_p_value(stretches, scores):
    return taken(stretches, scores)[-1]


def test_a_stretch_that_would_be_usual_with_the_scores_of_now_is_usual():
    rng = np.random.default_rng(0)
    then = rng.normal(size=6000)
    low = rng.normal(size=40) - 2.0
    assert last_p_value(known(then), low) < 0.001
    now = then.copy()
    now[1000:1600] -= 2.0  # a regime whose scores are lower in the units of now
    stretches = known(then)
    stretches.measure_anew(now)
    assert last_p_value(stretches, low) > 0.05
    stretches = known(then)
    stretches.measure_anew(now)
    assert last_p_value(stretches, low - 2.0) < 0.001


def test_a_stretch_of_records_that_are_too_usual_is_held_against_its_time_alone():
    rng = np.random.default_rng(1)
    then = rng.normal(size=6000)
    steady = 0.01 * rng.normal(size=40) + 2.0
    plain, anew = known(then), known(then)
    anew.measure_anew(then - 5.0)
    expected = last_p_value(plain, steady)
    assert expected < 0.001
    assert last_p_value(anew, steady) == expected


def test_the_same_scores_now_change_little():
    then = np.random.default_rng(2).normal(size=6000)
    plain, anew = known(then), known(then)
    anew.measure_anew(then)
    later = np.random.default_rng(3).normal(size=2000)
    a, b = taken(plain, later), taken(anew, later)
    assert (b >= a).all()
    assert 0.5 < np.mean(b <= 0.05) / np.mean(a <= 0.05) <= 1.0


@needs_compiler("24,000 records twice")
@pytest.mark.parametrize(("learner", "seed"), [(OSLRAU, 2), (StackedSPN, 6)])
def test_stretches_of_regimes_that_come_back_are_usual(learner, seed):
    """By scores of their time alone, with nearness, more than 600 have p-values up to 0.001."""
    block = StreamScorer(learner(), stretches=LENGTHS).process(switching([9, 9, seed], 24_000)[0])
    p_value = block.stretch.p_value[4000:]
    assert np.count_nonzero(p_value <= 0.001) <= 20
    assert np.count_nonzero(p_value <= 0.01) <= 300


@needs_compiler("4,000 records")
@pytest.mark.parametrize("cut", [2300, 3001, 3900])
def test_a_restored_scorer_goes_on_to_the_same_bits(cut):
    rows, _ = switching([9, 9, 4], 4000)
    whole = StreamScorer(OSLRAU(), stretches=LENGTHS)
    expected = whole.process(rows).stretch.p_value[cut:]
    scorer = StreamScorer(OSLRAU(), stretches=LENGTHS)
    scorer.process(rows[:cut])
    restored = StreamScorer.from_bytes(scorer.to_bytes())
    assert restored.process(rows[cut:]).stretch.p_value.tobytes() == expected.tobytes()
    assert restored.to_bytes() == whole.to_bytes()
