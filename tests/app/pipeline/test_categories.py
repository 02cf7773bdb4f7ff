"""Records with categories through a partition's pipeline, and on from its snapshots."""

from __future__ import annotations

import json

import numpy as np
import pytest

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.partitions.field_log import FieldLog
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record

SETTINGS = Settings(kinds=(("http.status", "category"),), alarm_rate=0.005)
SERVICES = ("checkout", "search", "nightly")
USUAL_LATENCY = (5.0, 1.0, 9.0)


def records(n, **changes):
    """Return records of three services, with other members of some by offset."""
    rng = np.random.default_rng(0)
    found = []
    for offset in range(n):
        service = int(rng.choice(3, p=[0.3, 0.6, 0.1]))
        row = {
            "latency": USUAL_LATENCY[service] + rng.normal(0, 0.1),
            "size": rng.normal(),
            "service": SERVICES[service],
            "http": {"status": 200 if rng.random() < 0.99 else 301},
            "trace": f"{offset:x}-{rng.integers(10**9)}",
        } | changes.get(f"at_{offset}", {})
        value = json.dumps(row).encode()
        found.append(Record("features", 0, offset, 1000 * offset, None, value, ()))
    return found


def process(pipeline, some):
    block = pipeline.process(some)
    return [message.value for message in block.scores], [alert.value for alert in block.alerts]


def test_an_anomaly_names_the_category_and_the_one_that_was_expected():
    stream = records(3000, at_2500={"http": {"status": 503}}, at_2600={"service": "serach"})
    pipeline = PartitionPipeline("features", 0, SETTINGS)
    _, alerts = process(pipeline, stream)
    found = {alert["offset"]: alert for alert in map(json.loads, alerts) if "event" not in alert}
    (status,) = found[2500]["contributions"]
    assert (status["field"], status["category"]) == ("http.status", "503")
    assert status["expected_category"] == "200"
    assert status["nats"] - status["usual"] > 5.0
    assert found[2600]["contributions"][0]["category"] == "serach"


def test_a_number_is_held_against_its_category():
    stream = records(3000, at_2500={"service": "search", "latency": 9.0})
    _, alerts = process(PartitionPipeline("features", 0, SETTINGS), stream)
    (alert,) = (found for found in map(json.loads, alerts) if found["offset"] == 2500)
    (latency,) = alert["contributions"]
    assert latency["field"] == "latency"
    assert latency["expected"] == pytest.approx(1.0, abs=0.1)


def test_identifiers_are_told_of_once(caplog):
    caplog.set_level("INFO")
    pipeline = PartitionPipeline("features", 0, SETTINGS)
    log = FieldLog(("features", 0), pipeline)
    stream = records(2000)
    for start in range(0, len(stream), 100):
        log.add(pipeline.process(stream[start : start + 100]))
    assert log.ignored == ["trace"]
    told = [message for message in caplog.messages if "left out from now on" in message]
    assert told == [
        "features/0: left out from now on, as their values only grow or hardly ever come again: "
        "trace"
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kinds": {"a": "colour"}}, "setting kinds: expected fields with one of number, category"),
        ({"kinds": {"b": "category"}}, "setting kinds: expected fields of the setting features"),
        ({"kinds": {"a": "ignored"}}, "setting kinds: expected no chosen field ignored, got a"),
        ({"kinds": {"a": "category"}}, "setting kinds: expected a chosen field that is a number"),
        (
            {"features": ["a", "b"], "kinds": {"a": "category"}, "transforms": {"a": "log"}},
            "setting transforms: expected numbers, got a",
        ),
    ],
)
def test_kinds_that_cannot_be_are_refused(values, message):
    with pytest.raises(SettingsError, match=message):
        Settings(**{"features": ("a",), **values})
