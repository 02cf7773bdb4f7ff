"""Which fields a partition has chosen, and which its records lack, in the log."""

import pytest
from as_records import as_records

from faust_oslrau.app.partitions.field_log import FieldLog
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings


def follow(settings, row, number, key=None):
    """Score so many equal records, and return what follows the fields."""
    pipeline = PartitionPipeline("features", 2, settings)
    log = FieldLog(("features", 2), pipeline)
    for first in range(0, number, 100):
        log.add(pipeline.process(as_records([row] * 100, 2, first=first, key=key)))
    return log


def test_a_choice_is_told_once_with_what_it_leaves_out(caplog):
    caplog.set_level("INFO")
    row = {"a": 1, "b": {"c": 2.5, "name": "x"}, "status": "ok", "tags": [1], "to": None, "id": 7}
    follow(Settings(entity="id"), row, 300)
    assert caplog.messages == [
        "features/2: the first records choose 4 fields: a, b.c, b.name, status; they leave out "
        "id (the entity), tags (hardly any number or text), to (hardly any value)"
    ]


def test_configured_fields_are_not_told_of(caplog):
    caplog.set_level("INFO")
    assert follow(Settings(features=("a",)), {"a": 1, "b": 2}, 1200).empty == []
    assert caplog.messages == []


def test_a_field_that_no_record_has_is_told_of_after_a_thousand_records(caplog):
    settings = Settings(features=("a", "tempreature"))
    assert follow(settings, {"a": 1, "temperature": 2}, 900).empty == []
    assert caplog.messages == []
    assert follow(settings, {"a": 1, "temperature": 2}, 1200).empty == ["tempreature"]
    assert caplog.messages == [
        "features/2: none of the first 1000 records has a value of tempreature: "
        "are the names right?"
    ]


def test_a_count_that_was_chosen_and_is_none_is_told_of_once(caplog):
    pipeline = PartitionPipeline("features", 2, Settings())
    log = FieldLog(("features", 2), pipeline)
    for offset in range(500):
        temp = offset % 7 if offset < 300 else -offset
        rows = [{"temp": temp, "x": offset**0.5 % 1}]
        log.add(pipeline.process(as_records(rows, 2, first=offset)))
    assert [message for message in caplog.messages if "temp" in message] == [
        "features/2: the first records of temp look like counts, and what is none counts as "
        "missing: if they are numbers, say so in kinds"
    ]


def test_a_field_of_entity_or_time_that_no_record_has_is_told_of(caplog):
    settings = Settings(features=("a",), entity="servce", time="tiem")
    row = {"a": 1, "service": "x", "time": 1_790_000_000}
    assert follow(settings, row, 1200).empty == ["servce", "tiem"]
    assert caplog.messages == [
        "features/2: none of the first 1000 records has a value of servce, tiem: "
        "are the names right?"
    ]


@pytest.mark.parametrize("entity", ["service", "key"])
def test_a_field_of_entity_or_time_that_records_have_is_not_told_of(entity, caplog):
    settings = Settings(features=("a",), entity=entity, time="time", rates="1m", rates_by="ok")
    row = {"a": 1, "service": "x", "time": 1_790_000_000, "ok": True}
    assert follow(settings, row, 1200, key=b"k").empty == []
    assert caplog.messages == []


def test_keys_and_groups_that_no_record_has_are_told_of():
    settings = Settings(features=("a",), entity="key", rates="1m", rates_by="sttus")
    assert follow(settings, {"a": 1}, 1200).empty == ["the message's key", "sttus"]


def test_names_in_settings_that_chosen_fields_lack_are_told_of():
    row = {"a": 1, "b": 2.5, "secret": 3}
    named = {
        "kinds": {"secret": "ignored", "pasword": "ignored", "cout": "count"},
        "transforms": {"a": "log1p", "bb": "log1p"},
        "directions": {"b": "high", "bh": "high"},
        "least": {"b": 2.0, "bl": 2.0},
    }
    assert follow(Settings(**named), row, 1200).empty == ["bb", "bh", "bl", "cout", "pasword"]
