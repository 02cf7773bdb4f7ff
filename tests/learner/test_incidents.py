"""Incidents: when they open and close, how severe they are, and that the log alone decides."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples, needs_compiler
from scipy.signal import lfilter
from scipy.stats import norm

from faust_oslrau.learner import (
    OSLRAU,
    IncidentParameters,
    InvalidInputError,
    InvalidParameterError,
    StateError,
    StreamScorer,
)
from faust_oslrau.learner.scoring.incidents import YOUNG, Incidents
from faust_oslrau.learner.state import pack, unpack

ALARM_RATE = 0.001
USUAL = 0.5


def places_of(m):
    """Return numbers, offsets and timestamps of records of a stream that is no longer young."""
    numbers = YOUNG + np.arange(m)
    return np.column_stack([numbers, 10 * numbers, 1000 + numbers])


def trace(p_values, incidents=None, **parameters):
    """Return (row, state, incident) of everything that happens to a stream of p-values."""
    incidents = incidents or Incidents(IncidentParameters(**parameters))
    p_values = np.array(p_values, np.float64)
    return incidents.trace(p_values, p_values <= ALARM_RATE, places_of(len(p_values)))


def quiet(n):
    return [USUAL] * n


def states(steps):
    return [(step.row, step.state) for step in steps if step.state is not None]


def naive(p_values, parameters):
    """Follow one stream record by record in plain Python; return the states of incidents."""

    def limits(rate):
        return math.log(2 / rate), math.log(2 * 0.098 / rate)

    opening = limits(parameters.false_alarm_rate)
    going_on = limits(max(parameters.false_alarm_rate, 0.1 / parameters.quiet_records))
    found, together, start = [], 0.0, None
    latest, total, level = None, 0.0, 0
    stretch, squares, dependence = 0.0, [], 1.0
    usual = 32 * (2 * (1 - (1 + math.log(100)) / 100) - 0.99**2) * 0.455
    for row, p in enumerate(p_values):
        evidence = []
        if row % 32 == 0:
            squares.append(stretch**2)
            stretch = 0.0
            if len(squares) >= 8:
                dependence = max(np.median(squares[-64:]) / usual, 1.0)
        if p == p:
            stretch += min(-math.log(p), math.log(100)) - 0.99
            if together <= 0:
                start = row
            together = max(together + math.log(0.2) - 0.8 * math.log(p), 0.0)
            ways = [(together, start), (-math.log(p), row)]
            alone, several = opening if latest is None else going_on
            enough = (several * dependence, alone)
            evidence = [way for way, limit in zip(ways, enough, strict=True) if way[0] >= limit]
        if evidence:
            nats, began = max(evidence, key=lambda way: way[0])
            total = nats if latest is None else total + nats
            severity = min(25 * math.log10(1 + total), 100)
            now = int(severity >= parameters.major) + int(severity >= parameters.critical)
            if latest is None:
                found.append((row, "opened", began))
            elif now > level:
                found.append((row, "updated", None))
            latest, together, level = row, 0.0, now
        elif latest is not None and row >= latest + parameters.quiet_records:
            found.append((row, "closed", None))
            latest = None
    return found


def began(step):
    """Return the row with which the evidence of an opened incident began."""
    return step.incident.start.number - YOUNG if step.state == "opened" else None


def bursts(seed, n=3000):
    """Return uniform p-values with single extreme ones, and stretches of low and missing ones."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    p[:20] = np.nan
    for _ in range(8):
        at, length = int(rng.integers(n)), int(rng.choice([1, 3, 20, 150]))
        p[at : at + length] **= float(rng.choice([1.5, 4, 20]))
    return np.maximum(p, 1e-300)


def test_usual_records_open_nothing():
    assert trace(np.random.default_rng(0).random(5000)) == []


def test_one_grossly_unusual_record_opens_an_incident_which_closes_after_quiet():
    steps = trace([*quiet(100), 1e-9, *quiet(400)], quiet_records=50)
    assert states(steps) == [(100, "opened"), (150, "closed")]
    incident = steps[-1].incident
    places = (incident.opened, incident.start, incident.peak, incident.latest)
    assert places == ((YOUNG + 100, 10 * YOUNG + 1000, YOUNG + 1100),) * 4
    assert (incident.p_value, incident.anomalies, incident.length) == (1e-9, 1, 1)
    assert incident.severity_name == "minor"


def test_the_first_records_of_a_stream_are_no_evidence():
    incidents = Incidents(IncidentParameters())
    places = places_of(300) - [YOUNG, 0, 0]
    assert incidents.trace(np.full(300, 1e-9), np.ones(300, bool), places) == []


def timed(p_values, milliseconds, **parameters):
    """Return the steps of a stream of p-values with these timestamps, -1 for none."""
    incidents, p_values = Incidents(IncidentParameters(**parameters)), np.array(p_values)
    places = places_of(len(p_values))
    places[:, 2] = milliseconds
    return states(incidents.trace(p_values, p_values <= ALARM_RATE, places))


def test_an_incident_closes_by_the_timestamps_of_records_if_a_time_is_given():
    p_values = [1e-9, *quiet(9)]
    every_second = 1000 * np.arange(10)
    assert timed(p_values, every_second, quiet_seconds=4) == [(0, "opened"), (4, "closed")]
    # However many records there are: their number does not count.
    assert timed([1e-9, *quiet(599)], np.arange(600), quiet_seconds=4) == [(0, "opened")]


def test_a_fault_after_the_time_of_quiet_is_the_next_incident():
    gap = [0, 1000, 1500, 9000, 9001]
    p_values = [1e-9, USUAL, 1e-9, 1e-9, USUAL]
    assert timed(p_values, gap, quiet_seconds=5) == [(0, "opened"), (3, "closed"), (3, "opened")]


def test_late_records_and_those_without_a_timestamp_close_nothing_before_their_number_is_due():
    backwards = [9000, 8000, 1000, -1, 9500]
    assert timed([1e-9, *quiet(4)], backwards, quiet_seconds=1) == [(0, "opened")]
    without = timed([1e-9, *quiet(9)], [-1] * 10, quiet_seconds=1, quiet_records=5)
    assert without == [(0, "opened"), (5, "closed")]


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 300), max_size=6).map(sorted))
def test_with_a_time_of_quiet_too_any_cutting_gives_the_same(seed, cuts):
    rng = np.random.default_rng(seed)
    p_values = np.where(rng.random(300) < 0.1, 1e-8, rng.random(300))
    places = places_of(300)
    places[:, 2] = np.cumsum(rng.integers(0, 900, 300)) + rng.integers(-2000, 2000, 300)
    found = []
    for bounds in ([0, 300], [0, *cuts, 300]):
        incidents, steps = Incidents(IncidentParameters(quiet_seconds=3)), []
        for first, last in pairwise(bounds):
            if last > first:
                some = slice(first, last)
                traced = incidents.trace(p_values[some], p_values[some] < 0.001, places[some])
                steps += [step._replace(row=first + step.row) for step in traced]
        found.append((steps, incidents.open))
    assert found[0] == found[1]


def test_an_incident_names_the_entity_of_the_record_that_opened_it():
    rng = np.random.default_rng(0)
    X, keys = rng.normal(size=(3000, 3)), [b"a", b"b", None, b"x" * 1000] * 750
    X[2001] += 50.0
    X[2503] -= 50.0
    one = StreamScorer(OSLRAU(), max_entities=4, incidents=IncidentParameters())
    first = one.process(X[:2010], keys[:2010])
    copy = StreamScorer.from_bytes(one.to_bytes())  # while it is open
    events = [*first.incidents, *copy.process(X[2010:], keys[2010:]).incidents]
    named = [(event.state, event.incident.entity) for event in events]
    assert ("opened", "b") in named and ("closed", "b") in named
    assert ("opened", "x" * 256) in named


def test_several_mildly_unusual_records_open_one_that_began_with_the_first():
    alone = trace([*quiet(100), 1e-4, *quiet(400)])
    assert alone == []
    steps = trace([*quiet(100), 1e-4, 1e-4, 5e-5, 1e-4, *quiet(400)])
    (opened, *_) = steps
    assert opened.state == "opened" and 100 < opened.row <= 103
    assert opened.incident.start.number == YOUNG + 100
    assert opened.incident.anomalies == opened.row - 99


def test_many_records_that_are_a_little_unusual_open_one():
    rng = np.random.default_rng(1)
    steps = trace(np.concatenate([rng.random(500), np.maximum(rng.random(300) ** 6, 1e-5)]))
    assert steps[0].state == "opened"
    assert steps[0].row < 600 and abs(steps[0].incident.start.number - YOUNG - 500) < 50
    assert all(step.incident.p_value >= 1e-5 for step in steps)


def test_faults_close_together_are_one_incident_and_far_apart_two():
    close = trace([*quiet(9), 1e-9, *quiet(49), 1e-9, *quiet(99)], quiet_records=50)
    assert states(close) == [(9, "opened"), (109, "closed")]
    assert close[-1].incident.anomalies == 2 and close[-1].incident.length == 51
    apart = trace([*quiet(9), 1e-9, *quiet(51), 1e-9, *quiet(99)], quiet_records=50)
    assert states(apart) == [(9, "opened"), (59, "closed"), (61, "opened"), (111, "closed")]


def test_a_lasting_fault_is_one_incident_whose_severity_rises_by_name():
    steps = trace([*quiet(9), *[1e-6] * 500, *quiet(300)])
    assert [state for _, state in states(steps)] == ["opened", "updated", "updated", "closed"]
    names = [step.incident.severity_name for step in steps if step.state is not None]
    assert names == ["minor", "major", "critical", "critical"]
    last = steps[-1].incident
    assert (last.anomalies, last.length) == (500, 500)
    assert last.evidence == pytest.approx(500 * -math.log(1e-6))


def test_anomalous_records_within_an_incident_are_counted_and_the_most_unusual_is_its_peak():
    steps = trace([*quiet(9), 1e-8, 9e-4, USUAL, 1e-12, USUAL, 9e-4, *quiet(300)])
    incident = steps[-1].incident
    assert incident.anomalies == 3  # the last one is no evidence
    assert (incident.peak.number, incident.p_value) == (YOUNG + 12, 1e-12)


def test_severity_is_25_for_each_power_of_ten_nats():
    nats = 99.0
    steps = trace([*quiet(9), math.exp(-nats)])
    assert steps[0].incident.severity == pytest.approx(50.0)
    assert steps[0].incident.severity_name == "major"
    assert trace([1e-300] * 500)[-1].incident.severity == 100.0


def test_thresholds_of_severity_are_parameters():
    parameters = IncidentParameters(major=20.0, critical=25.0)
    steps = trace([*quiet(9), 1e-9], Incidents(parameters))
    assert steps[0].incident.severity_name == "critical"


@needs_compiler("millions of p-values")
def test_independent_uniform_p_values_open_at_most_as_many_incidents_as_the_rate_says():
    rate, n = 1e-4, 2_000_000
    steps = trace(np.random.default_rng(2).random(n), false_alarm_rate=rate, quiet_records=20)
    opened = sum(step.state == "opened" for step in steps)
    assert 0.5 * n * rate < opened < 1.1 * n * rate  # ways overlap


@needs_compiler("half a million p-values")
def test_low_p_values_that_come_together_by_chance_open_few_incidents():
    rng, n = np.random.default_rng(3), 500_000
    steps, memory = rng.normal(size=n), 0.95
    walk = lfilter([math.sqrt(1 - memory**2)], [1, -memory], steps)
    opened = sum(step.state == "opened" for step in trace(norm.cdf(walk)))
    assert opened < 100  # without regard to dependence it would be a thousand


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 20, 256]))
def test_incidents_are_those_of_the_rules_in_plain_python(seed, quiet_records):
    parameters = IncidentParameters(quiet_records=quiet_records)
    p = bursts(seed, n=1500)
    found = [
        (step.row, step.state, began(step))
        for step in trace(p, Incidents(parameters))
        if step.state is not None
    ]
    assert found == naive(p.tolist(), parameters)


def faulty(seed=3, n=3000, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5)
    X[1300, 1] += 30.0
    X[1700:1720, 2] += 6.0
    X[2300:2600, 0] += 2.5
    X[rng.random(X.shape) < 0.01] = np.nan
    return X


def scorer(**parameters):
    return StreamScorer(
        OSLRAU(), incidents=IncidentParameters(**parameters), transforms={2: "asinh"}
    )


def shown(event, first=0):
    """Return an event as plain numbers, with its row in the whole stream."""
    blame = [column.tobytes() for column in event.blame]
    return (first + event.row, event.state, event.incident, blame)


WHOLE = faulty()


@pytest.fixture(scope="module")
def whole():
    return scorer().process(WHOLE)


def test_the_events_of_a_scored_stream_tell_its_faults(whole):
    opened = [event for event in whole.incidents if event.state == "opened"]
    assert opened[0].incident.opened.number == 1300
    assert opened[0].blame.order[0, 0] == 1
    lasting = [event.incident.opened.number for event in opened]
    assert any(1700 <= number < 1720 for number in lasting)
    assert any(2300 <= number < 2600 for number in lasting)


def test_blame_is_in_the_units_of_the_fields(whole):
    (event,) = (e for e in whole.incidents if e.state == "opened" and e.row == 1300)
    assert event.blame.value[0, 1] == WHOLE[1300, 1]
    assert event.blame.nats[0, 1] > event.blame.usual[0, 1]
    assert abs(event.blame.expected[0, 1]) < 10


def test_the_blame_of_an_incident_is_averaged_over_its_records(whole):
    closed = [
        e for e in whole.incidents if e.state == "closed" and 1700 <= e.incident.start.number < 1720
    ]
    assert closed[0].blame.order[0, 0] == 2
    assert 2.0 < closed[0].blame.value[0, 2] < 10.0


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=8).map(sorted), st.booleans())
def test_any_cutting_and_any_restart_give_the_same_incidents(whole, cuts, restart):
    pieces, copy = [], scorer()
    for first, last in pairwise([0, *cuts, len(WHOLE)]):
        if restart:
            copy = StreamScorer.from_bytes(copy.to_bytes())
        pieces += [shown(event, first) for event in copy.process(WHOLE[first:last]).incidents]
    assert pieces == [shown(event) for event in whole.incidents]
    reference = scorer()
    reference.process(WHOLE)
    assert copy.to_bytes() == reference.to_bytes()


def test_incidents_name_records_by_the_places_that_the_caller_gives():
    places = np.column_stack([7 + 3 * np.arange(3000), 10**12 + np.arange(3000)])
    events = scorer().process(WHOLE, places=places).incidents
    assert events[0].incident.opened == (1300, 7 + 3900, 10**12 + 1300)
    with pytest.raises(InvalidInputError, match="places"):
        scorer().process(WHOLE, places=places[:-1])


def test_each_of_several_faults_in_other_fields_opens_an_incident():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(9000, 4))
    for start in range(2000, 8000, 1000):  # a fiftieth of the records from here on
        X[start : start + 20, start // 1000 % 4] += 6.0
    block = StreamScorer(OSLRAU(), incidents=IncidentParameters()).process(X)
    opened = [event.incident.opened.number for event in block.incidents if event.state == "opened"]
    assert all(any(0 <= each - start < 20 for each in opened) for start in range(2000, 8000, 1000))


def test_what_lasts_is_the_new_normal():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(9000, 3))
    X[3000:] *= 2.5  # for good
    block = StreamScorer(OSLRAU(), incidents=IncidentParameters()).process(X)
    assert [event.state for event in block.incidents][:1] == ["opened"]
    assert block.incidents[-1].state == "closed"
    assert block.incidents[-1].row < 8000


def test_without_incidents_scores_and_state_are_the_same():
    plain, following = (
        StreamScorer(OSLRAU()),
        StreamScorer(OSLRAU(), incidents=IncidentParameters()),
    )
    blocks = [each.process(WHOLE) for each in (plain, following)]
    for name in ("log_likelihood", "p_value", "is_anomaly", "n_learned"):
        assert getattr(blocks[0], name).tobytes() == getattr(blocks[1], name).tobytes()
    assert [c.tobytes() for c in blocks[0].blame] == [c.tobytes() for c in blocks[1].blame]
    assert blocks[0].incidents == () and plain.open_incident is None
    following.incidents = None
    assert following.to_bytes() == plain.to_bytes()


def test_new_parameters_apply_from_the_next_row_on():
    one = scorer(quiet_records=2000)
    one.process(WHOLE[:1400])
    assert one.open_incident is not None
    one.incidents = IncidentParameters(quiet_records=10)
    (event,) = one.process(WHOLE[1400:1401]).incidents
    assert event.state == "closed"


@pytest.mark.parametrize(
    "wrong",
    [
        {"false_alarm_rate": 0.0},
        {"false_alarm_rate": 0.02},
        {"quiet_records": 0},
        {"quiet_seconds": 0},
        {"quiet_seconds": math.inf},
        {"major": 80.0},
        {"major": -1.0},
    ],
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        IncidentParameters(**wrong)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("evidence", lambda a: a - 1e9),
        ("evidence", lambda a: a[:1]),
        ("evidence", lambda a: a + 2),
        ("evidence", lambda a: a * 0),
        ("evidence_squares", lambda a: a - 1),
        ("evidence_squares", lambda a: a[:1]),
        ("evidence_marks", lambda a: a[:1]),
        ("evidence_marks", lambda a: a * 0 - 10),
        ("incident_means", lambda a: a[:, :1]),
        ("incident_seen", lambda a: a - 100),
    ],
)
def test_a_state_that_cannot_be_one_is_refused(name, change):
    one = scorer()
    one.process(WHOLE[:1310])
    assert one.open_incident is not None
    values, arrays = unpack(one.to_bytes(), "StreamScorer")
    arrays[name] = change(arrays[name])
    with pytest.raises(StateError):
        StreamScorer.from_bytes(pack("StreamScorer", values, arrays))


@pytest.mark.parametrize(
    "change",
    [
        {"open": {}},
        {"open": 3},
        {"uncounted": -1},
        {"parameters": {"quiet_records": 0}},
        {"parameters": {"other": 0}},
    ],
)
def test_values_that_cannot_be_of_a_state_are_refused(change):
    one = scorer()
    one.process(WHOLE[:1310])
    values, arrays = unpack(one.to_bytes(), "StreamScorer")
    values["incidents"] |= change
    with pytest.raises(StateError):
        StreamScorer.from_bytes(pack("StreamScorer", values, arrays))
