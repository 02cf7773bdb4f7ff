"""Recent records are held against later ones by scores of their time and in the units of now."""

import numpy as np
import pytest
from interpreter import needs_compiler
from streams import switching

from faust_oslrau.learner import OSLRAU, StackedSPN, StateError, StreamScorer
from faust_oslrau.learner.scoring.calibration import Calibration
from faust_oslrau.learner.scoring.incidents import IncidentParameters
from faust_oslrau.learner.scoring.ranking import Ranking
from faust_oslrau.learner.scoring.recent_records import FEWEST, RecentRecords

D = 6
CENTRES = 3.0 * np.random.default_rng(5).normal(size=(3, D))


def ranking(level, spread):
    found = Ranking()
    found.restore(np.array(level), np.array(spread), 10_000)
    return found


def recent(measures, units):
    records = RecentRecords()
    records.update(units.score(measures), measures)
    records.measure_anew(units)
    return records


def of_regimes(*lengths, seed=6):
    """Draw records of the first regime, the second, the third, the first, ..."""
    regime = np.repeat(np.arange(len(lengths)) % 3, lengths)
    return CENTRES[regime] + np.random.default_rng(seed).normal(size=(len(regime), D))


def test_a_record_with_measures_that_are_usual_is_usual_in_units_that_have_become_smaller():
    measures = np.random.default_rng(0).normal(size=(4000, 2))
    measures[::4, 0] -= 20.0  # another regime
    records = recent(measures, ranking([-5.0, 0.0], [10.0, 1.0]))
    smaller = ranking([0.0, 0.0], [1.0, 1.0])
    back = smaller.score(np.array([[-20.0, 0.0]]))
    assert records.p_value(back)[0] < 0.001
    records.measure_anew(smaller)
    assert records.p_value(back)[0] == 0.1
    assert records.p_value(smaller.score(np.array([[-40.0, 0.0]])))[0] < 0.001


def test_p_values_are_those_of_scores_where_units_stay_and_for_usual_records():
    measures = np.random.default_rng(1).normal(size=(4000, 3))
    units = ranking([0.0, 0.0, 0.0], [1.0, 2.0, 1.0])
    records, plain = recent(measures, units), Calibration()
    plain.update(units.score(measures))
    scores = units.score(np.random.default_rng(2).normal(size=(500, 3)) * 2.0)
    np.testing.assert_array_equal(records.p_value(scores), plain.p_value(scores))
    records.measure_anew(ranking([0.0, 0.0, 0.0], [0.1, 0.1, 0.1]))
    usual = plain.p_value(scores) >= 0.1
    np.testing.assert_array_equal(records.p_value(scores)[usual], plain.p_value(scores)[usual])


def test_few_measures_are_no_standard():
    units = ranking([0.0], [1.0])
    measures = np.random.default_rng(3).normal(size=(FEWEST - 1, 1))
    records = recent(measures, units)
    records.measure_anew(ranking([0.0], [0.01]))
    assert records.p_value(np.array([-10.0]))[0] < 0.001


@needs_compiler("16,000 records")
def test_a_regime_that_comes_back_raises_no_more_alarms_than_others():
    """By scores of their time alone, more than 100 of its first 125 records are anomalies."""
    n, (rows, regime) = 15_829, switching([9, 9, 0], 24_000)
    scorer = StreamScorer(StackedSPN())
    block = scorer.process(rows[:n])
    back = slice(15_475, n)
    assert len(np.unique(regime[back])) == 1 and (regime[back.start - 2000 : back.start] != 0).all()
    assert np.count_nonzero(block.p_value[back] <= 0.001) <= 1
    assert scorer.process(rows[n - 1 : n] + 9.0).p_value[0] < 0.001


@needs_compiler("12,000 records")
@pytest.mark.parametrize("cut", [2300, 3001, 3900])
def test_a_restored_scorer_goes_on_to_the_same_bits(cut):
    rows = of_regimes(*[500] * 8)
    rows[1500:1520] += 30.0  # an incident, without which evidence is calibrated
    parameters = {"incidents": IncidentParameters(), "alarm_rate": 0.01}
    whole = StreamScorer(OSLRAU(), **parameters)
    expected = whole.process(rows).p_value[cut:]
    scorer = StreamScorer(OSLRAU(), **parameters)
    scorer.process(rows[:cut])
    restored = StreamScorer.from_bytes(scorer.to_bytes())
    assert restored.process(rows[cut:]).p_value.tobytes() == expected.tobytes()
    assert restored.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize(
    "measures",
    [np.zeros((3, 2)), np.zeros((2, 3)), np.empty((0, 2)), np.array([[np.nan, 0.0]])],
)
def test_measures_that_cannot_be_are_refused(measures):
    with pytest.raises(StateError):
        RecentRecords().restore(np.zeros(2), measures, ranking([0.0, 0.0], [1.0, 1.0]))
