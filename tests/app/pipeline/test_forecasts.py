"""Forecasts from the records of a partition to its messages."""

import dataclasses

import numpy as np
import orjson
from as_records import as_records

from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings

RNG = np.random.default_rng(8)
N = 400
ROWS = RNG.normal(size=(N, 2)).cumsum(axis=0)
ROWS[350] = 1e6
PLAIN = Settings(features=["a", "b"], history=["10"], alarm_rate=0.01)
SETTINGS = dataclasses.replace(PLAIN, forecasts=True)
RECORDS = as_records(
    ({"a": a, "b": b} for a, b in ROWS.tolist()), time=lambda offset: 1000 * offset
)


def values(messages):
    return [orjson.loads(message.value) for message in messages]


def test_an_anomaly_tells_the_forecast_of_its_score():
    block = PartitionPipeline("features", 0, SETTINGS).process(RECORDS)
    assert [field["field"] for field in values(block.scores)[0]["forecast"]] == ["a", "b"]
    (anomaly,) = (score for score in values(block.anomalies) if score["offset"] == 350)
    assert anomaly["forecast"] == values(block.scores)[350]["forecast"]


def test_a_score_that_is_too_large_is_sent_without_its_forecast():
    fields = [f"{number:04}" + "f" * 200 for number in range(400)]
    settings = Settings(features=fields, forecasts=True, max_message_bytes=1024)
    records = as_records([{fields[0]: 1.0}], first=3, key=b"key")
    (score,) = PartitionPipeline("features", 0, settings).process(records).scores
    assert (score.key, orjson.loads(score.value)["offset"]) == (b"key", 3)
    assert "forecast" not in orjson.loads(score.value)
    assert "oslrau-left-out-bytes" in dict(score.headers)


def test_the_last_values_of_fields_come_with_what_was_expected_of_them():
    pipeline = PartitionPipeline("features", 0, SETTINGS)
    block = pipeline.process(RECORDS)
    told = orjson.loads(block.scores[-1].value)
    assert len(told["forecast"]) == len(block.expected_fields)
    for column, forecast in enumerate(told["forecast"]):
        value, *expected = block.expected_fields[forecast.pop("field")]
        assert value == ROWS[-1, column]
        assert expected == list(forecast.values())
    assert pipeline.process([]).expected_fields == {}


def test_only_the_first_fields_have_last_values():
    names = [f"f{number:02}" for number in range(40)]
    records = as_records([dict.fromkeys(names, 1.0)] * 20)
    settings = Settings(features=names, forecasts=True)
    block = PartitionPipeline("features", 0, settings).process(records)
    assert list(block.expected_fields) == names[:16]
    plain = PartitionPipeline("features", 0, Settings(features=names)).process(records)
    assert plain.expected_fields == {}
