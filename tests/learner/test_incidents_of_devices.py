"""What a deployment of many devices gets with ``max_entities`` and no other setting."""

import numpy as np
import pytest
from interpreter import needs_compiler

from benchmarks.systems.devices import BROKEN, devices
from faust_oslrau.learner import OSLRAU, IncidentParameters, StreamScorer

pytestmark = needs_compiler("tens of thousands of records")


def events(X, keys):
    scorer = StreamScorer(OSLRAU(), max_entities=100, incidents=IncidentParameters())
    return scorer.process(X, keys).incidents


def opened(X, keys):
    return [event for event in events(X, keys) if event.state == "opened"]


def test_a_stuck_field_of_one_device_is_one_incident_of_it_and_blamed():
    X, keys, rows = devices(0, "stuck", 16_000)
    first, *_, last = events(X, keys)
    assert first.incident.entity == f"device-{BROKEN}" and first.row in rows
    assert last.incident.opened == first.incident.opened  # there is no other
    assert last.blame.order[0, : last.blame.n_blamed[0]].tolist() == [1]
    assert last.blame.value[0, 1] == pytest.approx(X[rows[0], 1])
    assert np.isfinite(last.blame.expected[0, 1]) and last.blame.deviation[0, 1] > 0


def test_a_drift_of_one_device_is_an_incident_of_it_within_half_of_the_drift():
    X, keys, rows = devices(0, "drift", 60_000)
    first, *_ = opened(X, keys)
    assert first.incident.entity == f"device-{BROKEN}"
    assert rows[0] < first.row <= rows[499]


def test_without_a_fault_there_is_at_most_one_incident_in_60_000_records():
    X, keys, _ = devices(0, "none", 60_000)
    assert len(opened(X, keys)) <= 1
