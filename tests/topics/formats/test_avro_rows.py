"""Rows as Avro: what they say is written as it is, or refused."""

import json

import orjson
import pytest

from faust_oslrau.topics.formats import ContentError, Schema, codec, framed

POINT = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "double"}]}
OTHER = {"type": "record", "name": "O", "fields": [{"name": "y", "type": ["null", "int"]}]}


def of(*fields):
    """Return the codec of records with these types, or fields."""
    named = [each if "default" in each else {"name": "a", "type": each} for each in fields]
    return codec(
        "avro", Schema("AVRO", json.dumps({"type": "record", "name": "R", "fields": named}))
    )


def back(kind, content):
    """Return what a worker reads of what produce writes."""
    by = of(kind)
    return orjson.loads(by.decode(framed(1, by.encode({"a": content}))))["a"]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("int", 2.0),
        (["null", "int"], 2.0),
        (["null", "int"], None),
        ("long", -(2**63)),
        ("long", 1e18),
        ("float", 0.5),
        ("double", 1e300),
        (["float", "double"], 0.1),
        (["float", "double"], 1e300),
        (["int", "string"], "2"),
        (["int", "double"], 2.5),
        ([OTHER, POINT], {"x": 1.5}),
        ([{"type": "map", "values": "double"}, POINT, "string"], {"x": 1.5}),
        ({"type": "enum", "name": "E", "symbols": ["low", "high"]}, "high"),
        ({"type": "int", "logicalType": "date"}, "2026-05-01"),
        ({"type": "long", "logicalType": "timestamp-millis"}, 1_790_000_000_123),
    ],
)
def test_what_is_written_is_read_again(kind, content):
    assert back(kind, content) == content


@pytest.mark.parametrize(
    ("unit", "number"),
    [("millis", 1_777_629_600_123), ("micros", 1_777_629_600_123_456),
     ("nanos", 1_777_629_600_123_456_000)],
)  # fmt: skip
def test_times_may_be_texts(unit, number):
    kind = {"type": "long", "logicalType": f"timestamp-{unit}"}
    for text in ("2026-05-01T12:00:00.123456+02:00", "2026-05-01 10:00:00.123456"):
        assert back(kind, text) == number


@pytest.mark.parametrize(
    ("kind", "content", "told"),
    [
        ("long", 3.7, "field a: expected a whole number of 64 bits, got 3.7"),
        ("long", -0.9, "field a: expected a whole number of 64 bits, got -0.9"),
        ("int", 2**40, "field a: expected a whole number of 32 bits, got 1099511627776"),
        (["null", "int"], 3.7, "field a: expected a whole number of 32 bits, got 3.7"),
        ("int", True, "field a: expected a whole number of 32 bits, got True"),
        ("int", None, "field a: expected a whole number of 32 bits, got null"),
        ("float", 1e300, "field a: expected a number as float holds, got 1e\\+300"),
        (["float", "string"], 1e300, "expected a text, .*, or expected a number as float holds"),
        (POINT, {"x": "1"}, "field a: field x: expected a number as double holds, got '1'"),
        (POINT, [1], "field a: expected an object, got a list"),
        ({"type": "array", "items": "int"}, {}, "field a: expected a list, got an object"),
        ({"type": "map", "values": "int"}, 3, "field a: expected an object, got 3"),
        ({"type": "enum", "name": "E", "symbols": ["low"]}, "high", "expected one of low, got"),
        ({"type": "int", "logicalType": "date"}, "May", "field a: expected a date, got 'May'"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "May", "expected a time, got 'May'"),
        ("bytes", "x", "field a: bytes of Avro cannot be written"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3}, 1, "decimals of Avro cannot"),
    ],
)
def test_what_a_schema_cannot_hold_is_refused_with_its_field(kind, content, told):
    with pytest.raises(ContentError, match=told):
        of(kind).encode({"a": content})


def test_a_row_without_a_field_has_its_default():
    by = of({"name": "b", "type": "int", "default": 7}, ["null", POINT])
    assert orjson.loads(by.decode(framed(1, by.encode({})))) == {"b": 7, "a": None}
