"""Directions and least deviations: which unusual records matter."""

import numpy as np
import pytest

from faust_oslrau.learner import OSLRAU, IncidentParameters, StreamScorer
from faust_oslrau.learner.scoring.blame import Blame
from faust_oslrau.learner.scoring.relevance import Relevance

N, RATE = 20_000, 0.002


def stream(seed=0):
    """Return usual rows (n, 3) whose first two columns depend on each other."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(N, 3))
    rows[:, 1] = rows[:, 0] + 0.5 * rows[:, 1]
    return rows


def scored(rows, **parameters):
    return StreamScorer(OSLRAU(), alarm_rate=RATE, **parameters).process(rows)


FAULTS = np.arange(5000, N, 500)


@pytest.fixture(scope="module")
def rows():
    """Rows whose column 2 is ten deviations off now and then, below and above."""
    rows = stream()
    rows[FAULTS, 2] = np.where(np.arange(len(FAULTS)) % 2, 10.0, -10.0)
    return rows


def test_deviations_on_the_other_side_raise_no_alarm(rows):
    found = scored(rows, directions={2: "high"}).is_anomaly[FAULTS]
    assert found[1::2].all() and not found[::2].any()
    found = scored(rows, directions={2: "low"}).is_anomaly[FAULTS]
    assert found[::2].all() and not found[1::2].any()


def test_smaller_deviations_than_the_least_raise_no_alarm(rows):
    assert scored(rows, least={2: 8.0}).is_anomaly[FAULTS].all()
    assert not scored(rows, least={2: 12.0}).is_anomaly[FAULTS].any()


def test_another_alarm_rate_holds_from_the_next_record_on(rows):
    scorer = StreamScorer(OSLRAU(), alarm_rate=0.5, directions={2: "high"})
    scorer.process(rows[:4000])
    scorer.alarm_rate = RATE
    found = scorer.process(rows[4000:]).is_anomaly
    assert found[FAULTS - 4000][1::2].all() and not found[FAULTS - 4000][::2].any()
    assert found.mean() < 5 * RATE


def test_the_side_is_that_of_what_the_other_fields_suggest():
    rows = stream()
    rows[:, 2] = rows[:, 0] + 0.3 * rows[:, 2]
    rows[FAULTS] = [1.5, -1.5, 1.5]  # usual each, but column 1 is low for the others
    assert scored(rows, directions={1: "low"}).is_anomaly[FAULTS].mean() > 0.9
    assert scored(rows, directions={1: "high"}).is_anomaly[FAULTS].mean() < 0.1


@pytest.mark.parametrize(
    "parameters",
    [
        {"directions": {0: "high", 1: "high", 2: "high"}},
        {"directions": {2: "low"}, "least": {0: 2.5}},
        {"least": {0: 3.0, 1: 3.0}},
    ],
)
def test_alarms_stay_as_frequent_as_the_alarm_rate_and_other_p_values_uniform(parameters):
    block = scored(stream(1), **parameters)
    settled = block.p_value[3000:]
    assert 0.5 * RATE < (settled <= RATE).mean() < 1.6 * RATE
    for share in (0.02, 0.1, 0.5):
        assert 0.6 * share < (settled <= share).mean() < 1.3 * share


def test_alarms_blame_a_field_whose_deviation_matters():
    block = scored(stream(2), directions=dict.fromkeys(range(3), "high"))
    off = block.blame.value - block.blame.expected
    assert (off > 0.0).any(axis=1).all()


def test_log_likelihoods_do_not_change(rows):
    plain, block = scored(rows), scored(rows, directions={0: "low"}, least={2: 1.0})
    assert np.array_equal(plain.log_likelihood, block.log_likelihood, equal_nan=True)


def test_a_category_matters_whatever_its_code():
    found = Blame.none(2)._replace(
        nats=np.array([[np.nan, 5.0]]), value=np.zeros((1, 2)), expected=np.full((1, 2), np.nan)
    )
    assert Relevance({0: "high"}, {0: 1.0}).matters(found).all()


@pytest.mark.parametrize("side", ["high", "low"])
def test_only_deviations_that_matter_open_incidents_however_long_they_last(side):
    rows = stream()
    rows[6000:6300, 2] -= 5.0
    block = scored(rows, directions={2: side}, incidents=IncidentParameters())
    opened = [event for event in block.incidents if event.state == "opened"]
    assert len(opened) == (1 if side == "low" else 0)
