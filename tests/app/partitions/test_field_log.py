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


ROW = {"a": 1, "service": "x", "time": 1_790_000_000, "ok": True}
KEYED = {"features": ("a",), "time": "time", "rates": "1m", "rates_by": "ok"}


@pytest.mark.parametrize(
    ("settings", "key", "missing"),
    [
        ({"features": ("a",)}, None, []),
        ({"features": ("a", "servise")}, None, ["servise"]),
        ({"features": ("a",), "entity": "servce", "time": "tiem"}, None, ["servce", "tiem"]),
        ({"features": ("a",), "entity": "key", "rates": "1m", "rates_by": "sttus"}, None,
         ["the message's key", "sttus"]),
        (KEYED | {"entity": "service"}, None, []),
        (KEYED | {"entity": "key"}, b"k", []),
    ],
)  # fmt: skip
def test_a_field_that_no_record_has_is_told_of_after_a_thousand(settings, key, missing, caplog):
    caplog.set_level("INFO")
    settings = Settings(**settings)
    assert follow(settings, ROW, 900, key=key).empty == []
    assert caplog.messages == []
    assert follow(settings, ROW, 1200, key=key).empty == missing
    told = "features/2: none of the first 1000 records has a value of {}: are the names right?"
    assert caplog.messages == ([told.format(", ".join(missing))] if missing else [])


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


def test_names_in_settings_that_chosen_fields_lack_are_told_of():
    row = {"a": 1, "b": 2.5, "secret": 3}
    named = {
        "kinds": {"secret": "ignored", "pasword": "ignored", "cout": "count"},
        "transforms": {"a": "log1p", "bb": "log1p"},
        "directions": {"b": "high", "bh": "high"},
        "least": {"b": 2.0, "bl": 2.0},
    }
    assert follow(Settings(**named), row, 1200).empty == ["bb", "bh", "bl", "cout", "pasword"]
