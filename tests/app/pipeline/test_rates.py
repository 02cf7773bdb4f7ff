"""Rates from the records of a partition to its messages."""

import dataclasses

import numpy as np
import orjson
from as_records import as_records

from faust_oslrau.app.pipeline import PartitionPipeline, new_pipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record

SECOND, START = 1000, 1_767_225_600_000
SETTINGS = Settings(features=["a"], entity="key", rates="10s")
RNG = np.random.default_rng(5)


def records():
    """Yield the records of two devices, four a second; the second one sends less for a while."""
    for tick in range(6000):
        second, device = tick // 4, tick % 2
        if device == 1 and 900 <= second < 1000 and RNG.random() < 0.9:
            continue
        time = START + 250 * tick
        value = orjson.dumps({"a": RNG.normal()})
        yield Record("features", 2, tick, time, b"device-%d" % device, value)


RECORDS = list(records())


def test_the_topic_of_anomalies_gets_an_event_when_a_change_begins_and_when_it_ends():
    block = PartitionPipeline("features", 2, SETTINGS).process(RECORDS)
    events = [orjson.loads(message.value) for message in block.rate_changes]
    began, ended = (event for event in events if event.get("entity") == "device-1")
    assert (began["event"], began["state"], ended["state"]) == ("rate", "began", "ended")
    assert began["since"] == ended["since"] == START + 900 * SECOND
    assert began["window_seconds"] == 10.0
    assert began["records"] < began["low"] <= began["expected"] <= began["high"]
    assert START + 910 * SECOND <= began["timestamp"] < START + 930 * SECOND
    assert START + 1010 * SECOND <= ended["timestamp"] < START + 1040 * SECOND
    assert set(block.rate_changes) <= set(block.alerts)
    assert block.n_rate_changes == sum(event["state"] == "began" for event in events)


def test_a_partition_with_an_initial_model_has_rates_of_its_own(tmp_path):
    fitted = PartitionPipeline("features", 0, SETTINGS)
    fitted.process(RECORDS[:2000])
    (tmp_path / "model").write_bytes(fitted.snapshot(0, 4000).to_bytes())
    settings = dataclasses.replace(SETTINGS, initial_model=str(tmp_path / "model"))
    later = [record._replace(timestamp=record.timestamp + 10**9) for record in RECORDS[3000:3600:3]]
    assert new_pipeline("features", 2, settings).process(later).rate_changes == []


def with_statuses():
    """Return requests, ten a second, of which 1 % fail, and half of them for a while."""
    rows = []
    for tick in range(12_000):
        share = 0.5 if 8000 <= tick < 8400 else 0.01
        status = 503 if RNG.random() < share else 200
        rows.append({"a": RNG.normal(), "http": {"status": status}})
    return as_records(rows, 2, time=lambda tick: START + 100 * tick)


BY_STATUS = Settings(features=["a"], rates="10s", rates_by="http.status")


def test_a_surge_of_one_value_of_a_field_is_told():
    requests = with_statuses()
    whole = PartitionPipeline("features", 2, BY_STATUS).process(requests).rate_changes
    events = [orjson.loads(message.value) for message in whole]
    began = [e for e in events if e["state"] == "began" and e["since"] > START + 700_000]
    surge = next(each for each in began if each.get("category") == "503")
    assert (surge["field"], "entity" in surge) == ("http.status", False)
    assert surge["since"] in (START + 790 * SECOND, START + 800 * SECOND)
    assert surge["records"] > 30 > surge["high"]
    assert {each.get("category") for each in began} == {"503", "200"}

    pieces, found = PartitionPipeline("features", 2, BY_STATUS), []
    for first in range(0, len(requests), 1700):
        found += pieces.process(requests[first : first + 1700]).rate_changes
        snapshot = pieces.snapshot(0, pieces.next_offset)
        pieces = PartitionPipeline.restored(snapshot, BY_STATUS)
    assert [message.value for message in found] == [message.value for message in whole]
    by_entity = dataclasses.replace(BY_STATUS, rates_by=None)
    assert PartitionPipeline.restored(snapshot, by_entity).scorer.rates_by is None


def test_true_and_false_are_counted_each_for_itself():
    settings = Settings(features=["a"], rates="10s", rates_by="ok")
    rows = ({"a": RNG.normal(), "ok": tick % 2 == 0 or 3600 <= tick < 4000} for tick in range(6000))
    records = as_records(rows, 2, time=lambda tick: START + 250 * tick)
    pipeline = PartitionPipeline("features", 2, settings)
    events = [orjson.loads(each.value) for each in pipeline.process(records).rate_changes]
    assert {event["category"] for event in events} == {"true", "false"}
    assert {event["field"] for event in events} == {"ok"}
