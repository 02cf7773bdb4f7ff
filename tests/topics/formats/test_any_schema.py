"""Whatever a schema or a record holds, it is read or refused: nothing else may stop a worker."""

import copy
import json
import random
from contextlib import suppress

import pytest

from faust_oslrau.topics import Record, dead_letter
from faust_oslrau.topics.formats import (
    Acceptance,
    ContentError,
    Schema,
    SchemaError,
    Translator,
    codec,
    framed,
)
from faust_oslrau.topics.formats import translation as translation_module

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
FIXED = {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 8}
INNER = {
    "type": "record", "name": "B", "fields": [
        {"name": "x", "type": "double"},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["p", "q"]}},
    ],
}  # fmt: skip
TYPES = [
    ["null", INNER], DECIMAL, FIXED, {"type": "map", "values": "long"}, "float", "B",
    {"type": "array", "items": ["int", "string"]}, {"type": "int", "logicalType": "date"},
]  # fmt: skip
BASE = {
    "type": "record", "name": "A", "namespace": "n.m",
    "fields": [{"name": f"f{i}", "type": kind} for i, kind in enumerate(TYPES)],
}  # fmt: skip
JUNK = [None, 0, -1, 2**70, 1.5, "", "x", "record", "null", [], {}, ["null"], [["null"]], True,
        {"type": "record"}, {"type": "array", "items": "int"}, "n.m.A", "B", "\ud800", "decimal",
        float("inf"), {"type": ["null"]}, {"type": {"type": "int"}}, -5, 10**6, 1e400]  # fmt: skip


def places(node, path=()):
    """Yield the paths to all that is in a document."""
    inside = node.items() if isinstance(node, dict) else enumerate(node)
    for name, content in inside:
        yield (*path, name)
        if isinstance(content, dict | list):
            yield from places(content, (*path, name))


def changed(schema, chance):
    """Return a schema with something else in one of its places."""
    schema = copy.deepcopy(schema)
    *outer, last = chance.choice(list(places(schema)))
    node = schema
    for name in outer:
        node = node[name]
    if isinstance(node, dict) and chance.random() < 0.2:
        del node[last]
    else:
        node[last] = copy.deepcopy(chance.choice(JUNK))
    return schema


def assert_reads_or_refuses(format_name, schema, contents):
    try:
        found = codec(format_name, schema, 1_000_000)
    except SchemaError as error:
        assert len(str(error)) < 1000
        str(error).encode()
        assert len(str(error).splitlines()) == 1
        return
    for content in contents:
        with suppress(ContentError):
            json.loads(found.decode(framed(1, content)))
    with suppress(ContentError):
        found.encode({"f0": None})


@pytest.mark.parametrize("seed", range(4))
def test_any_schema_of_avro_is_used_or_refused(seed):
    chance = random.Random(seed)
    for _ in range(400):
        schema = BASE
        for _ in range(chance.choice([0, 1, 1, 2])):
            schema = changed(schema, chance)
        contents = [chance.randbytes(chance.choice([3, 20, 60])) for _ in range(3)]
        assert_reads_or_refuses("avro", Schema("AVRO", json.dumps(schema)), contents)


DECIMALS = ["1e400", "10, \"scale\": 1e400", "1000000000, \"scale\": 999999999",
            "2000000000000000000000, \"scale\": 1999999999999999999999"]  # fmt: skip


@pytest.mark.parametrize("precision", DECIMALS)
def test_decimals_of_any_scale_are_read_or_refused(precision):
    decimal = f'{{"type": "bytes", "logicalType": "decimal", "precision": {precision}}}'
    text = f'{{"type": "record", "name": "A", "fields": [{{"name": "d", "type": {decimal}}}]}}'
    assert_reads_or_refuses("avro", Schema("AVRO", text), [b"\x02\x05"])


PROTO = """syntax = "proto3";
message A { B b = 1; repeated double x = 2; map<string, B> m = 3; enum E { P = 0; } E e = 4; }
message B { optional string s = 1; }
"""
WORDS = ["message", *'{};=1A"é', "import", "\0", "\u2028", "999999999999"]


def test_any_schema_of_protobuf_is_used_or_refused():
    chance = random.Random(1)
    for _ in range(8):  # each starts a process
        at = chance.randrange(len(PROTO))
        text = PROTO[:at] + chance.choice(WORDS) + PROTO[at + chance.choice([0, 1, 9]) :]
        contents = [b"\0" + chance.randbytes(20) for _ in range(20)]
        assert_reads_or_refuses("protobuf", Schema("PROTOBUF", text), contents)


@pytest.mark.parametrize("name", ["\ud800", "n" * 200_000, "a\nb\0c"])
@pytest.mark.parametrize(
    ("format_name", "schema"),
    [
        ("avro", lambda name: Schema("AVRO", json.dumps({"type": name}))),
        ("avro", lambda name: Schema(name, "")),
        ("protobuf", lambda name: Schema("PROTOBUF", 'import "none";', ((name, ""),))),
        ("protobuf", lambda name: Schema("PROTOBUF", name)),
    ],
)
def test_any_name_in_a_schema_becomes_a_dead_letter_that_can_be_written(format_name, schema, name):
    found = Translator(format_name, 1000)
    found.accept([Acceptance(5, schema(name), 0, None)])
    record = Record("t", 0, 0, 0, None, framed(5, b"x"))
    _, rejected = found.translate([record])
    assert rejected[0].reason == "wrong_schema"
    assert len(rejected[0].detail.encode()) < 700
    assert len(rejected[0].detail.splitlines()) == 1
    assert dead_letter(record, rejected[0], 1000).value == record.value


class Odd:
    """A codec whose records raise an error that nobody thought of."""

    def __init__(self, error):
        self.error = error

    def decode(self, value):
        raise self.error


ERRORS = [KeyError("x"), RecursionError(), ArithmeticError("a\nb"), AssertionError("z" * 9000)]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_that_nobody_thought_of_rejects_the_record(error, monkeypatch):
    codec.cache_clear()
    from faust_oslrau.topics.formats import avro

    monkeypatch.setattr(avro, "new_codec", lambda schema: Odd(error))
    found = Translator("avro", 1000)
    found.accept([Acceptance(5, Schema("AVRO", repr(error)), 0, None)])
    for offset in range(2):
        record = Record("t", 0, offset, 0, None, framed(5, b"x"))
        _, rejected = found.translate([record])
        assert rejected[0].reason == "not_of_schema"
        assert rejected[0].detail.startswith(f"schema 5: {type(error).__name__}")
        assert len(rejected[0].detail) < 400
        assert "\n" not in rejected[0].detail
    codec.cache_clear()


def test_a_full_disk_is_no_rejection(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(translation_module, "codec", full)
    found = Translator("avro", 1000)
    found.accept([Acceptance(5, Schema("AVRO", "{}"), 0, None)])
    with pytest.raises(OSError, match="No space"):
        found.translate([Record("t", 0, 0, 0, None, framed(5, b"x"))])
