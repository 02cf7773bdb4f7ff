"""Records that say themselves when they happened."""

import json
from dataclasses import replace

from as_records import as_records

from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings

HOUR, START = 3_600_000, 1_767_225_600_000


def records(number, timestamp=None):
    """Return records each hour, whose values differ between day and night."""
    return as_records(
        ({"a": 5.0 * (n % 24 < 12) + 0.1 * (n % 7), "at": 1_767_225_600 + 3600 * n}
         for n in range(number)), time=timestamp,
    )  # fmt: skip


def scores(settings, given):
    block = PartitionPipeline("features", 0, settings).process(given)
    return [json.loads(message.value) for message in block.scores], block


def test_messages_name_the_time_of_the_field_and_have_the_time_stamp_of_their_record():
    found, block = scores(Settings(time="at"), records(3, timestamp=77))
    expected = [START + n * HOUR for n in range(3)]
    assert [score["timestamp"] for score in found] == expected
    assert {message.timestamp for message in block.scores} == {77}


def test_the_time_is_no_feature():
    pipeline = PartitionPipeline("features", 0, Settings(time="at"))
    pipeline.process(records(240))
    assert pipeline.fields == ("a",)
    assert pipeline.left_out == ("at (the time)",)


def test_seasons_go_by_the_field():
    settings = Settings(features=("a",), time="at", seasons="UTC")
    given = records(2400)
    by_field = scores(settings, given)[0]
    stamped = [each._replace(timestamp=START + n * HOUR) for n, each in enumerate(given)]
    assert [s["log_likelihood"] for s in by_field] == [
        s["log_likelihood"] for s in scores(replace(settings, time=None), stamped)[0]
    ]


def test_a_record_without_a_readable_time_is_scored_without_one():
    broken = [record._replace(value=b'{"a": 1, "at": "soon"}') for record in records(2)]
    found, _ = scores(Settings(time="at", features=("a",)), broken)
    assert [score["timestamp"] for score in found] == [None, None]
