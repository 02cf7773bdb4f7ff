"""Fields that change, from the records of a partition to its messages."""

from dataclasses import replace

import orjson
import pytest
from as_records import as_records

from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.learner.errors import StateError
from faust_oslrau.topics import Record

SETTINGS = Settings(features=["a"], entity="machine")
START = 1_767_225_600_000


def records():
    """Yield records whose field becomes a text, and whose entity gets another name."""
    for offset in range(7000):
        named = "machine" if offset < 5000 else "device"
        content = offset % 7 if offset < 3000 else str(offset % 7)
        value = orjson.dumps({"a": content, named: "press-1"})
        yield Record("features", 2, 2 * offset, START + offset, b"k", value)


RECORDS = list(records())


def test_the_topic_of_anomalies_gets_an_event_also_where_the_records_are_dead_letters():
    block = PartitionPipeline("features", 2, SETTINGS).process(RECORDS)
    events = [orjson.loads(message.value) for message in block.field_changes]
    assert [(event["state"], event["field"]) for event in events] == [
        ("type", "a"),
        ("appeared", "device"),
        ("vanished", "machine"),
    ]
    assert events[0]["now"] == "text" and 6000 < events[0]["offset"] < 8000
    assert len(block.dead_letters) == 4000
    assert [START + event["offset"] // 2 for event in events] == [e["timestamp"] for e in events]
    assert set(block.field_changes) <= set(block.alerts)
    assert block.changed_fields == {"type": 1, "appeared": 1, "vanished": 1}
    assert len({dict(message.headers)["ce_id"] for message in block.field_changes}) == 3


@pytest.mark.parametrize(("kind", "told"), [("number", ["unit"]), ("category", [])])
def test_codes_of_a_category_have_no_unit(kind, told):
    settings = Settings(features=["a", "code"], kinds={"code": kind})
    codes = (i % 8 + 1 if i < 4000 else 100 * (i % 8 + 1) for i in range(8000))
    records = as_records(({"a": i % 7, "code": code} for i, code in enumerate(codes)), 2)
    block = PartitionPipeline("features", 2, settings).process(records)
    assert [orjson.loads(message.value)["state"] for message in block.field_changes] == told


@pytest.mark.parametrize("watched", [{"seen": "x"}, {"quartiles": {"a": [[1.0]]}}, {"counts": 1}])
def test_a_damaged_state_is_refused(watched):
    pipeline = PartitionPipeline("features", 2, SETTINGS)
    pipeline.process(RECORDS[:100])
    snapshot = pipeline.snapshot(0, pipeline.next_offset)
    with pytest.raises(StateError, match="fields that records have"):
        PartitionPipeline.restored(replace(snapshot, watched=watched), SETTINGS)
