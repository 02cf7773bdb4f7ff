"""How unusual records are: what is measured of them, and the one score made of it."""

import numpy as np
import pytest

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.scoring.ranking import MOST_SPREADS, Ranking


def ranking(measures):
    result = Ranking()
    result.update(measures)
    return result


USUAL = np.random.default_rng(73).normal(size=(256, 3)) * [1.0, 100.0, 0.01] + [5.0, 0.0, -1.0]


def test_the_score_is_the_lowest_measure_in_units_of_its_own():
    found = ranking(USUAL)
    spread = np.sqrt(2 / np.pi) * np.array([1.0, 100.0, 0.01])
    rows = [[5.0, 0.0, -1.0], [1.0, 0.0, -1.0], [5.0, -400.0, -0.9], [9.0, 0.0, -1.04]]
    expected = [0.0, -4.0 / spread[0], -400.0 / spread[1], -0.04 / spread[2]]
    assert found.score(np.array(rows)) == pytest.approx(expected, rel=0.15, abs=0.3)


def test_a_wild_value_does_not_blind_a_measure():
    wild = USUAL.copy()
    wild[10] -= 1e12
    for found in (ranking(wild), ranking(USUAL)):
        found.update(wild)
        assert (found.mean_spread < (1 + 2 * MOST_SPREADS / 256) * ranking(USUAL).spread).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tiny", [0.0, 1e-17])
def test_a_measure_that_hardly_varies_is_left_in_its_own_units(tiny):
    found = ranking(tiny * np.array([[0.0], [1.0], [0.0], [2.0]]))
    assert found.score(np.array([[-3.0], [0.0]])) == pytest.approx([-3.0, 0.0])
    Ranking().restore(found.state(), found.n)


@pytest.mark.parametrize("value", [0.0, -0.0, 2.5])
def test_the_state_of_a_stream_that_never_varies_does_not_depend_on_how_it_is_cut(value):
    rows = np.full((600, 3), value)
    whole, pieces = StreamScorer(OSLRAU()), StreamScorer(OSLRAU())
    whole.process(rows)
    for start in range(0, 600, 7):
        pieces.process(rows[start : start + 7])
    assert pieces.to_bytes() == whole.to_bytes()
