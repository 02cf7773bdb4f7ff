"""Records of Avro as JSON: fastavro writes them, and reads them as well."""

import json
import math
from datetime import date
from decimal import Decimal
from io import BytesIO

import fastavro
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.topics.formats import ContentError, Schema, SchemaError, codec, framed
from faust_oslrau.topics.formats.errors import LargeContentError


def record(*fields, name="R"):
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{i}", "type": kind} for i, kind in enumerate(fields)],
    }


def of(schema, *references):
    return codec("avro", Schema("AVRO", json.dumps(schema), references))


def written(schema, content):
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), content)
    return framed(1, out.getvalue())


def read(schema, content):
    """Return what a record is as JSON."""
    return orjson.loads(of(schema).decode(written(schema, content)))


LONGS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
TYPES = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": LONGS,
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": DOUBLES,
    "string": st.text(),
}
SIMPLE = st.sampled_from(sorted(TYPES)).map(lambda kind: (kind, TYPES[kind]))


def lists(inner):
    return inner.map(lambda of: ({"type": "array", "items": of[0]}, st.lists(of[1], max_size=4)))


def maps(inner):
    names = st.text(max_size=3)
    return inner.map(
        lambda of: ({"type": "map", "values": of[0]}, st.dictionaries(names, of[1], max_size=3))
    )


def optional(inner):
    known = inner.filter(lambda of: not isinstance(of[0], list) and of[0] != "null")
    return known.map(lambda of: (["null", of[0]], st.none() | of[1]))


@st.composite
def records(draw, inner):
    fields = draw(st.lists(inner, max_size=6))
    name = f"R{draw(st.integers(0, 10**9))}"
    contents = st.fixed_dictionaries({f"f{i}": content for i, (_, content) in enumerate(fields)})
    return record(*(kind for kind, _ in fields), name=name), contents


ANY = st.recursive(
    SIMPLE, lambda inner: lists(inner) | maps(inner) | optional(inner) | records(inner)
)


@st.composite
def schemas_and_contents(draw):
    schema, contents = draw(records(ANY))
    return schema, draw(contents)


def names_are_unique(schema):
    text = json.dumps(schema)
    return text.count('"record"') == len({part.split('"')[0] for part in text.split('"R')[1:]})


@given(schemas_and_contents().filter(lambda found: names_are_unique(found[0])))
def test_rows_are_written_and_read_as_by_fastavro(found):
    schema, content = found
    value = written(schema, content)
    source = BytesIO(value[5:])
    expected = fastavro.schemaless_reader(source, fastavro.parse_schema(schema), None)
    assert orjson.loads(of(schema).decode(value)) == orjson.loads(orjson.dumps(expected))
    assert framed(1, of(schema).encode(content)) == value


WIDE = record("double", "string", ["null", "long"], {"type": "array", "items": "float"}, "boolean")
CONTENT = {"f0": 0.1, "f1": "é", "f2": 300, "f3": [1.0, 2.0], "f4": True}


def test_a_record_that_is_cut_anywhere_is_refused():
    value = written(WIDE, CONTENT)
    for end in range(5, len(value)):
        with pytest.raises(ContentError):
            of(WIDE).decode(value[:end])


def test_bytes_that_are_left_over_are_refused():
    with pytest.raises(ContentError, match="2 bytes are left over"):
        of(WIDE).decode(written(WIDE, CONTENT) + b"ab")


def test_nan_is_missing_and_infinity_is_a_number_beyond_a_double():
    schema = record("double", "float", record("double", name="Inner"))
    content = {"f0": math.nan, "f1": math.inf, "f2": {"f0": -math.inf}}
    assert of(schema).decode(written(schema, content)) == (
        b'{"f0":null,"f1":1e999,"f2":{"f0":-1e999}}'
    )


def test_times_are_numbers_dates_are_texts_and_decimals_are_exact():
    schema = record(
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "long", "logicalType": "timestamp-micros"},
        {"type": "int", "logicalType": "date"},
        {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2},
        {"type": "fixed", "size": 4, "name": "D", "logicalType": "decimal", "precision": 9},
        {"type": "string", "logicalType": "uuid"},
    )
    content = {
        "f0": 1_790_000_000_123, "f1": 1_790_000_000_123_456, "f2": date(2026, 5, 1),
        "f3": Decimal("-1234567890123456789012345.67"), "f4": Decimal(7), "f5": "x",
    }  # fmt: skip
    assert of(schema).decode(written(schema, content)) == (
        b'{"f0":1790000000123,"f1":1790000000123456,"f2":"2026-05-01",'
        b'"f3":-1234567890123456789012345.67,"f4":7,"f5":"x"}'
    )


def test_a_logical_type_of_another_type_is_none():
    schema = record(
        {"type": "string", "logicalType": "date"}, {"type": "long", "logicalType": "decimal"}
    )
    assert read(schema, {"f0": "x", "f1": 5}) == {"f0": "x", "f1": 5}


def test_enums_are_texts_and_bytes_are_missing():
    schema = record(
        {"type": "enum", "name": "E", "symbols": ["low", "high"]},
        "bytes",
        {"type": "fixed", "name": "F", "size": 2},
    )
    assert read(schema, {"f0": "high", "f1": b"\0", "f2": b"ab"}) == {
        "f0": "high", "f1": None, "f2": None,
    }  # fmt: skip


def test_a_named_type_is_read_wherever_it_is_named():
    point = record("double", name="Point")
    schema = record(point, "Point", ["null", "Point"])
    content = {"f0": {"f0": 1.0}, "f1": {"f0": 2.0}, "f2": {"f0": 3.0}}
    assert read(schema, content) == content


def test_a_schema_may_refer_to_others_that_refer_to_others():
    side = {"type": "enum", "name": "Side", "symbols": ["left", "right"]}
    inner, outer = record("double", "Side", name="Inner"), record("Inner", "Side", name="Outer")
    others = [(each["name"], json.dumps(each)) for each in (side, inner)]
    found = of(outer, *others)
    content = framed(1, found.encode({"f0": {"f0": 2.5, "f1": "right"}, "f1": "left"}))
    assert found.decode(content) == b'{"f0":{"f0":2.5,"f1":"right"},"f1":"left"}'


def test_a_type_that_is_named_a_million_times_is_made_once():
    doubled = record("double", name="R0")
    for level in range(1, 21):
        doubled = record(doubled, f"R{level - 1}", name=f"R{level}")
    of(doubled)


def test_a_long_list_of_nothing_takes_no_memory():
    schema = record({"type": "array", "items": "null"})
    with pytest.raises(ContentError, match="a list has"):
        of(schema).decode(framed(1, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\0"))


def bombs():
    """Yield schemas and contents of which a few bytes stand for endless JSON."""
    nothing = {"type": "record", "name": "Z", "fields": []}
    for items in ("null", nothing, {"type": "fixed", "name": "F", "size": 0}):
        lists = {"type": "array", "items": items}
        yield record(lists), b"\xd0\x2d" * 1500 + b"\0"  # blocks of 2,920 items each
        yield record({"type": "array", "items": lists}), b"\xd0\x0f" + b"\xd0\x2d\0" * 1000 + b"\0"
    doubled = {"type": "record", "name": "R0", "fields": []}
    for level in range(1, 30):
        doubled = record(doubled, f"R{level - 1}", name=f"R{level}")
    yield doubled, b""
    named = {"type": "record", "name": "N", "fields": [{"name": "n" * 9000, "type": "boolean"}]}
    yield record({"type": "array", "items": named}), b"\xd0\x0f" + bytes(1000) + b"\0"
    long = {"type": "enum", "name": "E", "symbols": ["s" * 9000]}
    yield record({"type": "array", "items": long}), b"\xd0\x0f" + bytes(1000) + b"\0"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("schema", "content"), list(bombs()))
def test_few_bytes_become_no_endless_json(schema, content):
    found = codec("avro", Schema("AVRO", json.dumps(schema)), 1_000_000)
    with pytest.raises(LargeContentError, match="its JSON is too large"):
        found.decode(framed(1, content))


def chained(levels):
    """Return a union of records of which each has the one before it."""
    first = {"type": "record", "name": "R0", "fields": [{"name": "x", "type": "double"}]}
    rest = [record(f"R{i}", name=f"R{i + 1}") for i in range(levels)]
    return [first, *rest]


def test_types_that_are_too_many_within_each_other_are_refused():
    assert of(chained(90)).decode(framed(1, b"\xb4\x01" + bytes(8))).startswith(b'{"f0":{"f0":')
    with pytest.raises(SchemaError, match="levels of types, at most 100 are taken"):
        of(chained(200))
    nested = "double"
    for _ in range(200):
        nested = {"type": "array", "items": nested}
    with pytest.raises(SchemaError, match="200 levels of nesting, at most 100 are taken"):
        of(nested)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '"double', '{"type": "what"}', '{"type": "record"}', '{"type": ["null", {}]}',
     '{"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}',
     '{"type": "record", "name": "N", "fields": 3}', "[" * 20_000, "null", "7"],
)  # fmt: skip
def test_what_is_no_schema_is_refused(text):
    try:
        found = codec("avro", Schema("AVRO", text))
    except SchemaError:
        return
    with pytest.raises(ContentError):  # a schema of nothing reads no content
        found.decode(framed(1, b"abc"))


def test_a_schema_that_contains_itself_says_so():
    node = {"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}
    with pytest.raises(SchemaError, match="N contains itself"):
        of(node)
