"""Rests after short visits."""

import pytest

from faust_oslrau.app.kafka.batches import RecordBatch
from faust_oslrau.app.partitions import rests
from faust_oslrau.app.partitions.assignment import BATCHES_IN_WORK
from faust_oslrau.app.partitions.rests import LONG_RECORDS, LONGEST_SECONDS, SHORT_RECORDS, Rests


@pytest.fixture
def clock(monkeypatch):
    """A clock that is moved by hand."""
    now = [100.0]
    monkeypatch.setattr(rests, "monotonic", lambda: now[0])
    return now


MANY = BATCHES_IN_WORK + 1


@pytest.mark.parametrize(
    ("records", "took", "expected"),
    [
        ([5] * MANY, 0.06, 0.06),
        ([5] * MANY, 3.0, LONGEST_SECONDS),
        ([5] * BATCHES_IN_WORK, 0.06, 0.0),
        ([SHORT_RECORDS] * MANY, 0.06, 0.06),
        ([SHORT_RECORDS + 1] * MANY, 0.06, 0.0),
        ([1] * 99 + [LONG_RECORDS - 1], 0.06, 0.06),
        ([1] * 99 + [LONG_RECORDS], 0.06, 0.0),
    ],
)
def test_a_rest_as_long_as_short_visits_took_is_taken_once(clock, records, took, expected):
    found = Rests()
    assert found.take() == 0.0
    with found.measured([RecordBatch(0, [None] * number) for number in records]):
        clock[0] += took
    clock[0] += 10.0  # until the next records come
    assert found.take() == pytest.approx(expected)
    assert found.take() == 0.0
