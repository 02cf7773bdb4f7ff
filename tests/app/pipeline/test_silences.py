"""Silences from the records of a partition to its messages."""

import dataclasses

import numpy as np
import orjson

from faust_oslrau.app.pipeline import PartitionPipeline, new_pipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record

SECOND, START = 1000, 1_767_225_600_000
SETTINGS = Settings(features=["a"], entity="key", events=["incidents", "silences"])
RNG = np.random.default_rng(5)


def records():
    """Yield the records of three devices, one a second in turn; the second one pauses."""
    for second in range(900):
        device = second % 3
        if device == 1 and 300 <= second < 600:
            continue
        time = START + SECOND * second
        value = b"broken" if second == 310 else orjson.dumps({"a": RNG.normal()})
        yield Record("features", 2, 10 * second, time, b"device-%d" % device, value)


RECORDS = list(records())


def test_the_topic_of_anomalies_gets_an_event_when_a_silence_begins_and_when_it_ends():
    block = PartitionPipeline("features", 2, SETTINGS).process(RECORDS)
    began, ended = (orjson.loads(message.value) for message in block.silences)
    assert began | {"offset": 0, "timestamp": 0, "seconds": 0, "limit_seconds": 0} == {
        "event": "silence", "topic": "features", "partition": 2, "offset": 0, "timestamp": 0,
        "state": "began", "entity": "device-1", "last_offset": 2980,
        "last_timestamp": START + 298 * SECOND, "seconds": 0, "limit_seconds": 0,
    }  # fmt: skip
    assert 9 <= began["limit_seconds"] < began["seconds"] < 15
    assert START + 305 * SECOND < began["timestamp"] < START + 315 * SECOND
    assert ended | {"state": "began"} != began
    assert (ended["offset"], ended["state"]) == (6010, "ended")
    assert set(block.silences) <= set(block.alerts)
    assert (block.silence_counts.found, block.silence_counts.silent) == (1, 0)
    assert block.silence_counts.limit >= 3


def test_a_partition_with_an_initial_model_begins_with_no_silence_of_its_history(tmp_path):
    fitted = PartitionPipeline("features", 0, SETTINGS)
    fitted.process(RECORDS[:400])
    (tmp_path / "model").write_bytes(fitted.snapshot(0, 4000).to_bytes())
    settings = dataclasses.replace(SETTINGS, initial_model=str(tmp_path / "model"))
    block = new_pipeline("features", 2, settings).process(RECORDS[600:])
    assert block.silences == []
    assert block.silence_counts.silent == 0
