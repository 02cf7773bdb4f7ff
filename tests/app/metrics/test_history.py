"""What is kept of the last minutes: little, whatever comes."""

import tracemalloc
from dataclasses import replace

import numpy as np
import orjson
import pytest
from as_records import as_records

from faust_oslrau.app.metrics import history
from faust_oslrau.app.metrics.history import ANOMALIES, SECONDS, History
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import OutMessage


@pytest.fixture
def clock(monkeypatch):
    """Seconds since 1970 that the test lets pass."""
    times = [5000.0]
    monkeypatch.setattr(history.time, "time", lambda: times[0])
    return times


SETTINGS = Settings(features=("a", "b"))


def _processed(values, settings=SETTINGS):
    pipeline = PartitionPipeline("features", 0, settings)
    return pipeline.process(as_records(values, key=b"k"))


def _numbers(number):
    rng = np.random.default_rng(0)
    return [orjson.dumps({"a": a, "b": b}) for a, b in rng.normal(size=(number, 2)).tolist()]


@pytest.mark.parametrize("has_incident", [False, True])
def test_an_entity_with_an_incident_is_watched_before_anybody_looks(has_incident, clock):
    block = replace(_processed(_numbers(5000), Settings(entity="key")), anomalies=[])
    others = replace(block, keys=[b"other"] * 5000)
    mixed = replace(block, keys=[b"other"] * 4999 + [b"k"])
    incident = {"incident": "features/0/1", "offset": 1, "state": "opened", "entity": "k"}
    event = OutMessage(1, b"k", orjson.dumps({**incident, "opened_timestamp": None}), None)
    part = History()
    part.add_emitted(replace(mixed, incidents=[event] if has_incident else []))
    for _ in range(8):  # more than the last records that are kept of all
        clock[0] += 1
        part.add_emitted(others)
    assert len(list(part.rows_of("k").between(0, 10_000))) == has_incident


def test_memory_is_bounded(clock):
    part = History()
    block = _processed(_numbers(2000), Settings(alarm_rate=0.9))
    assert len(block.anomalies) > ANOMALIES
    for _ in range(2 * SECONDS):
        part.add_emitted(block)
        part.add_lag(1)
        clock[0] += 1
    assert len(part.anomalies) == ANOMALIES
    shown = [message._replace(headers=()) for message in block.anomalies[-ANOMALIES:]]
    assert [found.message for found in part.anomalies] == shown
    assert len(list(part.since(0))) == SECONDS


def test_a_large_record_is_not_kept(clock):
    usual = _numbers(1000)
    odd = orjson.dumps({"a": 1e6, "b": 1e6, "note": "x" * 100_000})
    block = _processed([*usual, odd])
    part = History()
    part.add_emitted(block)
    kept = orjson.loads(part.anomalies[-1].message.value)
    assert kept["offset"] == 1000 and "record" not in kept
    assert kept["contributions"]


def test_long_keys_and_headers_take_little_memory_and_stay_known(clock):
    block = _processed(_numbers(1), replace(SETTINGS, entity="key"))
    block = replace(block, p_value=np.array([1e-5]))
    part = History()
    name = "x" * 100_000
    tracemalloc.start()
    for number in range(600):
        key = f"{name}{number:03}".encode()
        headers = (("tracestate", f"{name}{number}".encode()),)
        anomaly = block.scores[0]._replace(key=key, headers=headers)
        alarming = [key[:256].decode()]
        part.add_emitted(replace(block, keys=[key], anomalies=[anomaly], alarming=alarming))
        clock[0] += 1
    del key, anomaly, headers
    assert tracemalloc.get_traced_memory()[0] < 4_000_000
    tracemalloc.stop()
    assert part.anomalies[-1].message.key == f"{name}599".encode()[:1024]
    (row,) = part.rows_of(f"{name}599").between(0, 10_000)
    assert row.is_anomaly
    assert list(part.rows_of(f"{name}000").between(0, 10_000)) == []
