"""A few records too unusual to be chance do not hide later ones."""

import numpy as np
import pytest
from interpreter import needs_compiler

from faust_oslrau.learner import StackedSPN, StateError, StreamScorer
from faust_oslrau.learner.scoring.bursts import FEWEST, MOST, Bursts

RATE = 0.001


def p_values(unusual, m=256):
    values = np.full(m, 0.5)
    values[:unusual] = 1e-7
    return values


def test_a_burst_is_left_out_and_what_may_be_a_new_regime_is_not():
    bursts = Bursts()
    assert bursts.find(p_values(10), RATE, FEWEST).sum() == 10
    assert bursts.find(p_values(33), RATE, FEWEST).sum() == 0
    assert bursts.find(p_values(32), RATE, FEWEST - 1).sum() == 0
    usual = np.linspace(0.02 * RATE, 1.0, 256)
    assert not bursts.find(usual, RATE, FEWEST).any()
    assert not bursts.find(np.full(16, np.nan), RATE, FEWEST).any()


def test_bursts_that_come_often_become_usual_and_are_forgotten():
    bursts = Bursts()
    found = [int(bursts.find(p_values(20), RATE, 8192).sum()) for _ in range(100)]
    assert found[:3] == [20, 20, 20] and sum(found[:32]) <= 2 * MOST
    for _ in range(100):
        bursts.find(p_values(0), RATE, 8192)
    assert bursts.find(p_values(20), RATE, 8192).sum() == 20


@pytest.mark.parametrize("left_out", [-1.0, MOST + 1.0, np.nan])
def test_a_number_that_cannot_be_is_refused(left_out):
    with pytest.raises(StateError):
        Bursts().restore(left_out)


@needs_compiler("34,560 records")
def test_the_fourth_burst_at_night_is_found_as_the_first_one():
    """Values of noon for ten minutes, of a record a minute: the mean rate is above the nominal."""
    rng, per_day = np.random.default_rng([1, 77, 1440]), 1440
    times = np.arange(24 * per_day) * 60_000
    hour = times / 3.6e6 % 24
    opened = (hour >= 8) & (hour < 20)
    rows = 6.0 * opened[:, None] * rng.uniform(0.5, 1.5, 4)
    rows += rng.normal(size=(len(hour), 4)) @ (np.eye(4) + 0.5 * rng.normal(size=(4, 4)))
    nights = [slice(day * per_day + 150, day * per_day + 160) for day in (16, 18, 20, 22)]
    for night in nights:
        rows[night] = rows[night.start + 540 : night.stop + 540]
    places = np.column_stack([np.arange(len(rows)), times])
    scorer = StreamScorer(StackedSPN(), alarm_rate=RATE, seasons="UTC")
    block = scorer.process(rows, None, places)
    assert [bool(block.is_anomaly[night].any()) for night in nights] == [True] * 4
    usual = np.arange(len(rows)) >= 14 * per_day
    for night in nights:
        usual[night] = False
    assert block.is_anomaly[usual].mean() <= 2 * RATE
