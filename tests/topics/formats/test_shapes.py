"""What is left out of a document that a schema is to write."""

import json

import orjson
import pytest

from faust_oslrau.topics.formats import ContentError, Schema, codec, fitted, framed

POINT = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "double"}]}
AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "a", "type": "double"},
        {"name": "one", "type": ["null", POINT]},
        {"name": "list", "type": {"type": "array", "items": "P"}},
        {"name": "named", "type": {"type": "map", "values": "P"}},
        {"name": "any", "type": ["double", "P", {"type": "map", "values": "double"}]},
    ],
}
PROTO = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
message R { double a = 1; P one = 2; repeated P list = 3; map<string, P> named = 4; double any = 5;
            google.protobuf.Timestamp at = 6; R inner = 7; double cost_each = 8; E e = 9; }
message P { double x = 1; }
enum E { LOW = 0; HIGH = 1; }"""
CODECS = {
    "avro": codec("avro", Schema("AVRO", json.dumps(AVRO))),
    "protobuf": codec("protobuf", Schema("PROTOBUF", PROTO)),
}
ROW = {
    "a": 1.0, "one": {"x": 2.0, "y": 0}, "list": [{"x": 3.0}, {"x": 4.0, "z": {"deep": 1}}],
    "named": {"k": {"x": 5.0, "y": 0}}, "any": 6.0, "extra": "n/a",
}  # fmt: skip
KEPT = {
    "a": 1.0, "one": {"x": 2.0}, "list": [{"x": 3.0}, {"x": 4.0}], "named": {"k": {"x": 5.0}},
    "any": 6.0,
}  # fmt: skip


@pytest.mark.parametrize("name", CODECS)
def test_what_the_schema_does_not_have_is_left_out_and_named(name):
    by, left_out = CODECS[name], set()
    document = fitted(ROW, by.shape, left_out)
    assert document == KEPT
    assert left_out == {"extra", "one.y", "list.z", "named.y"}
    assert orjson.loads(by.decode(framed(1, by.encode(document)))).items() >= KEPT.items()


def test_a_map_in_a_union_of_several_types_is_left_as_it_is():
    row, left_out = KEPT | {"any": {"x": 1.0, "y": 2.0}}, set()
    assert fitted(row, CODECS["avro"].shape, left_out) == row
    assert left_out == set()


def test_forms_that_json_gives_to_messages_are_left_as_they_are():
    row = {"at": "2026-05-01T00:00:00Z", "costEach": 2.0, "inner": {"inner": {"e": "HIGH"}}}
    by, left_out = CODECS["protobuf"], set()
    assert fitted(row, by.shape, left_out) == row
    assert left_out == set()
    assert orjson.loads(by.decode(framed(1, by.encode(row))))["cost_each"] == 2.0


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("row", [[1], 3, "x", {"a": "x"}, {"a": 1, "one": 3}, {"extra": 1}])
def test_what_is_of_another_type_is_refused_in_one_line(name, row):
    by = CODECS[name]
    with pytest.raises(ContentError) as error:
        by.encode(row)
    assert str(error.value) and "\n" not in str(error.value)
    assert fitted([1], by.shape, set()) == [1]


def test_an_enum_that_does_not_have_a_text_is_refused():
    by = CODECS["protobuf"]
    with pytest.raises(ContentError, match="HUGE"):
        by.encode(fitted({"e": "HUGE"}, by.shape, set()))
