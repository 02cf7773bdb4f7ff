"""Incidents: when they open and close, how severe they are, and that the log alone decides."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples, needs_compiler
from naive_incidents import NaiveIncidents
from scipy.signal import lfilter
from scipy.stats import norm

from faust_oslrau.learner import OSLRAU, IncidentParameters, StreamScorer
from faust_oslrau.learner.scoring import incidents as incidents_module
from faust_oslrau.learner.scoring.clock import Clock, plausible
from faust_oslrau.learner.scoring.evidence import MOST
from faust_oslrau.learner.scoring.incidents import YOUNG, Incidents, Rows

ALARM_RATE = 0.001
USUAL = 0.5
SLOTS = 4


def places_of(m):
    """Return numbers, offsets and timestamps of records of a stream that is no longer young."""
    numbers = YOUNG + np.arange(m)
    return np.column_stack([numbers, 10 * numbers, 1000 + numbers])


def rows_of(p_values, slots=None, fresh=None, stuck=None, places=None):
    """Return records of these p-values; of one entity and nothing stuck, unless they are given."""
    p = np.array(p_values, np.float64)
    m = len(p)
    stuck = np.zeros(m) if stuck is None else stuck
    places = places_of(m) if places is None else places
    now = Clock().take(places)[1:, 1]
    return Rows(
        p, np.column_stack([0.5 * stuck, stuck]), p <= ALARM_RATE, places,
        np.zeros(m, np.int64) if slots is None else slots,
        np.zeros(m, np.bool_) if fresh is None else fresh, plausible(places[:, 2], now), now,
    )  # fmt: skip


def trace(p_values, **parameters):
    """Return the steps of a stream of p-values."""
    return Incidents(IncidentParameters(**parameters)).trace(rows_of(p_values))


def quiet(n):
    return [USUAL] * n


def usual(n):
    return np.random.default_rng(7).random(n).tolist()


BURST = [1e-9] * 3
"""As few unusual records as open an incident."""


def states(steps):
    return [(step.row, step.state) for step in steps if step.state is not None]


def streams(seed, n=1500):
    """Return records of several entities, which give way to others now and then.

    Their p-values are uniform, missing, or low for a while; some of their fields are stuck.
    """
    rng = np.random.default_rng(seed)
    p, slots = rng.random(n), rng.integers(SLOTS, size=n) * rng.integers(2)
    p[:20] = np.nan
    for _ in range(8):
        at, length = int(rng.integers(n)), int(rng.choice([1, 3, 20, 150]))
        p[at : at + length] **= float(rng.choice([1.5, 4, 20]))
    stuck = rng.exponential(1.0, n) * rng.choice([0.0, 1.0, 4.0], n, p=[0.6, 0.39, 0.01])
    places = places_of(n)
    places[:, 2] = np.cumsum(rng.integers(0, 900, n)) + rng.integers(-2000, 2000, n)
    places[rng.random(n) < 0.2, 2] = -1
    places[rng.random(n) < 0.003, 2] += 10**12
    return rows_of(np.maximum(p, 1e-300), slots, rng.random(n) < 0.004, stuck, places)


def told(steps):
    """Return events with their incidents, whose evidence is a sum of rounded logarithms."""
    return [
        (row, state, replace(incident, evidence=round(incident.evidence, 6)))
        for row, state, incident, *_ in steps
        if state is not None
    ]


some_parameters = st.builds(
    IncidentParameters,
    quiet_records=st.sampled_from([1, 20, 256]),
    quiet_seconds=st.sampled_from([None, 3.0, 40.0]),
)


def test_a_few_grossly_unusual_records_open_an_incident_which_closes_after_quiet():
    steps = trace([*quiet(100), *BURST, *quiet(400)], quiet_records=50)
    assert states(steps) == [(102, "opened"), (152, "closed")]
    incident = steps[-1].incident
    first, last = ((YOUNG + row, 10 * (YOUNG + row), 1000 + YOUNG + row) for row in (100, 102))
    places = (incident.opened, incident.start, incident.peak, incident.latest)
    assert places == (last, first, last, last)
    assert (incident.p_value, incident.anomalies, incident.length) == (1e-9, 3, 3)
    assert incident.severity_name == "minor"


@pytest.mark.parametrize("p_value", [1e-9, 1e-300])
def test_one_unusual_record_opens_none(p_value):
    assert trace([*quiet(100), p_value, *quiet(100)]) == []


def test_the_first_records_of_a_stream_are_no_evidence():
    incidents = Incidents(IncidentParameters())
    places = places_of(300) - [YOUNG, 0, 0]
    assert incidents.trace(rows_of(np.full(300, 1e-9), places=places)) == []


def timed(p_values, milliseconds, **parameters):
    """Return the steps of a stream of p-values with these timestamps, -1 for none."""
    places = places_of(len(p_values))
    places[:, 2] = milliseconds
    incidents = Incidents(IncidentParameters(**parameters))
    return states(incidents.trace(rows_of(p_values, places=places)))


def test_an_incident_closes_by_the_timestamps_of_records_if_a_time_is_given():
    every_second = 1000 * np.arange(12)
    found = timed([*BURST, *quiet(9)], every_second, quiet_seconds=4)
    assert found == [(2, "opened"), (6, "closed")]
    # However many records there are: their number does not count.
    assert timed([*BURST, *quiet(599)], np.arange(602), quiet_seconds=4) == [(2, "opened")]


def test_a_wrong_time_stamp_neither_closes_an_incident_nor_keeps_it_open():
    times = 1000 * np.arange(100)
    times[20] += 10**12
    quiet_after = {"quiet_seconds": 60, "quiet_records": 50}
    found = timed([*quiet(10), *BURST, *quiet(87)], times, **quiet_after)
    assert found == [(12, "opened"), (72, "closed")]
    found = timed([*quiet(18), *BURST, *quiet(79)], times, **quiet_after)
    assert found == [(20, "opened"), (70, "closed")]  # when nobody knows: after so many records


def test_an_incident_names_the_entity_of_the_record_that_opened_it():
    rng = np.random.default_rng(0)
    X, keys = rng.normal(size=(3000, 3)), [b"a", b"b", None, b"x" * 1000] * 750
    X[2001:2061:4] += 50.0
    X[2503:2563:4] -= 50.0
    parameters = IncidentParameters(quiet_records=100)
    block = StreamScorer(OSLRAU(), max_entities=4, incidents=parameters).process(X, keys)
    named = [(event.state, event.incident.entity) for event in block.incidents]
    assert ("opened", "b") in named and ("closed", "b") in named
    assert ("opened", "x" * 256) in named


def test_a_lasting_fault_is_one_incident_whose_severity_rises_by_name():
    steps = trace([*usual(700), *[1e-6] * 500, *usual(300)])
    assert [state for _, state in states(steps)] == ["opened", "updated", "updated", "closed"]
    names = [step.incident.severity_name for step in steps if step.state is not None]
    assert names == ["minor", "major", "critical", "critical"]
    last = steps[-1].incident
    assert (last.anomalies, last.length) == (500, 500)
    each = math.log(0.2) + 0.8 * MOST  # as much as a record counts at the most
    assert last.evidence == pytest.approx(500 * each, rel=0.01)


def test_severity_is_25_for_each_power_of_ten_nats_and_named_by_thresholds():
    for nats, severity, name in ((99.0, 50.0, "major"), (1e5, 100.0, "critical")):
        rows = rows_of(quiet(10), stuck=np.append(np.zeros(9), nats))
        (step,) = Incidents(IncidentParameters()).trace(rows)
        assert step.incident.severity == pytest.approx(severity)
        assert step.incident.severity_name == name
    steps = trace([*quiet(9), *BURST], major=20.0, critical=25.0)
    assert steps[0].incident.severity_name == "critical"


@needs_compiler("millions of p-values")
def test_independent_uniform_p_values_open_fewer_incidents_than_the_rate_says():
    rate, n = 1e-3, 2_000_000
    steps = trace(np.random.default_rng(2).random(n), false_alarm_rate=rate, quiet_records=20)
    opened = sum(step.state == "opened" for step in steps)
    assert opened < 0.1 * n * rate  # by far: the bound holds for any sums


@needs_compiler("half a million p-values")
def test_low_p_values_that_come_together_by_chance_open_few_incidents():
    rng, n = np.random.default_rng(3), 500_000
    steps, memory = rng.normal(size=n), 0.95
    walk = lfilter([math.sqrt(1 - memory**2)], [1, -memory], steps)
    opened = sum(step.state == "opened" for step in trace(norm.cdf(walk)))
    assert opened < 100  # without regard to dependence it would be a thousand


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), some_parameters, st.sampled_from([1, 2, 256]))
def test_incidents_are_those_of_the_rules_in_plain_python(seed, parameters, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incidents_module, "MOST_OPEN", most)
        found = told(Incidents(parameters).trace(streams(seed)))
    assert found == told(NaiveIncidents(parameters, most).trace(streams(seed)))


def faulty(seed=3, n=3000, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5)
    X[1300:1310, 1] += 30.0
    X[1700:1730, 2] += 6.0
    X[2300:2600, 0] += 2.5
    X[rng.random(X.shape) < 0.01] = np.nan
    return X


def scorer(**parameters):
    incidents = IncidentParameters(**parameters)
    return StreamScorer(OSLRAU(), incidents=incidents, transforms={2: "asinh"})


WHOLE = faulty()


def test_incidents_name_records_by_the_places_that_the_caller_gives():
    places = np.column_stack([7 + 3 * np.arange(3000), 10**12 + np.arange(3000)])
    events = scorer().process(WHOLE, places=places).incidents
    at = events[0].row
    assert events[0].incident.opened == (at, 7 + 3 * at, 10**12 + at)


@pytest.mark.parametrize("layers", [{}, {"history": ("10",)}, {"transforms": {1: "asinh"}}])
def test_an_incident_blames_the_stuck_field_and_anomalies_what_they_blame_without(layers):
    X = np.random.default_rng(11).normal(size=(2400, 3)) @ (np.eye(3) + 0.5)
    X[1500:1600, 1] = 0.2
    X[1530:1600:10, 0] += 40.0  # wrong beside the stuck field
    following = StreamScorer(OSLRAU(), incidents=IncidentParameters(), **layers).process(X)
    plain = StreamScorer(OSLRAU(), **layers).process(X)
    for left, right in zip(following.blame, plain.blame, strict=True):
        np.testing.assert_array_equal(left, right)
    last = [e for e in following.incidents if 1500 <= e.incident.opened.number < 1600][-1]
    assert last.state == "closed" and last.blame.order[0, 0] == 1
    assert last.blame.value[0, 1] == pytest.approx(0.2)
    assert last.blame.excess[0, 1] > 12.0


def test_new_parameters_apply_from_the_next_row_on():
    one = scorer(quiet_records=2000)
    one.process(WHOLE[:1400])
    assert one.open_incidents
    one.incidents = IncidentParameters(quiet_records=10)
    (event,) = one.process(WHOLE[1400:1401]).incidents
    assert event.state == "closed"
