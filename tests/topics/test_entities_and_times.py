"""Which entity a record belongs to, and when it happened."""

import json

import pytest

from faust_oslrau.topics import EntityReader, Record, TimeReader


def entity(value, name="id", key=b"k"):
    (found,) = EntityReader(name).read([Record("features", 0, 0, None, key, value)])
    return found


@pytest.mark.parametrize("key", [None, b"", b"k", b"\xff\x00", b"x" * 1_000_000])
def test_a_key_is_an_entity_byte_for_byte(key):
    assert entity(b"{}", "key", key) == key


@pytest.mark.parametrize("name", ["id", "meta.id", "an \\odd\n name"])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('"pump-7"', b"pump-7"), ('"M\\u00fcnchen"', "München".encode()), ('""', b""), ("7", b"7"),
        ("7.0", b"7"), ("0.7e1", b"7"), ('"7"', b"7"), ("-0.0", b"0"), ("1.5", b"1.5"),
        ("9007199254740993", b"9007199254740993"), ("1e16", b"10000000000000000"),
        ("123456789012345678901234567890", b"1.2345678901234568e+29"),
        ("1.2345678901234568e29", b"1.2345678901234568e+29"),
        *((content, None) for content in (
            "1e400", "null", "true", "[1]", '{"a": 1}', '"\\ud800"'
        )),
    ],
)  # fmt: skip
def test_texts_and_numbers_in_a_field_are_entities(name, content, expected):
    if name == "meta.id":
        value = b'{"x": 1, "meta": {"id": %b}}' % content.encode()
    else:
        value = b'{"x": 1, %b: %b}' % (json.dumps(name).encode(), content.encode())
    assert entity(value, name) == expected


def test_booleans_are_entities_for_who_asks_for_them():
    records = [Record("features", 0, 0, None, None, b'{"id": %b}' % each) for each in
               (b"true", b"false", b"1", b"null")]  # fmt: skip
    assert EntityReader("id", booleans=True).read(records) == [b"true", b"false", b"1", None]


def test_a_record_without_the_field_has_no_entity():
    assert entity(b'{"x": 1}') is None
    assert entity(b'{"meta": 3}', "meta.id") is None


def test_a_key_with_a_dot_wins_over_a_path():
    assert entity(b'{"meta": {"id": "a"}, "meta.id": "b"}', "meta.id") == b"b"


def test_a_number_beyond_a_double_elsewhere_does_not_hide_the_entity():
    assert entity(b'{"id": "a", "x": 1e400}') == entity(b'{"x": 1e400, "id": "a"}') == b"a"


def time(content, name="at"):
    value = b'{"x": 1, %b: %b}' % (json.dumps(name).encode(), content.encode())
    (found,) = TimeReader(name).read([Record("features", 0, 0, None, None, value)])
    return found


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1767225600", 1_767_225_600_000),  # seconds
        ("1767225600.25", 1_767_225_600_250),
        ("1767225600250", 1_767_225_600_250),  # milliseconds
        ("1767225600250000", 1_767_225_600_250),  # microseconds
        ("1767225600250000000", 1_767_225_600_250),  # nanoseconds
        ('"2026-01-01T00:00:00Z"', 1_767_225_600_000),
        ('"2026-01-01T01:00:00.250+01:00"', 1_767_225_600_250),
        ('"2026-01-01 00:00:00"', 1_767_225_600_000),  # UTC
        ('"2026-01-01"', 1_767_225_600_000),
        ('"01/Jan/2026:01:00:00 +0100"', 1_767_225_600_000),  # of web servers
        ('"[01/Jan/2026:00:00:00 +0000]"', 1_767_225_600_000),
        ('"Thu, 01 Jan 2026 00:00:00 GMT"', 1_767_225_600_000),  # RFC 2822
        ('"1 Jan 2026 00:00:00 -0130"', 1_767_231_000_000),
        ('"1767225600.25"', 1_767_225_600_250),  # seconds as text
        ('"1712011200123"', 1_712_011_200_123),
        ("0", 0),
    ],
)
def test_numbers_and_texts_name_times(content, expected):
    assert time(content) == expected


@pytest.mark.parametrize(
    "content",
    ['"01/Foo/2026:00:00:00 +0000"', '"20260501100000"', '"42"', "-1", '"1969-12-31T23:59:59Z"',
     "1e300", "123456789012345678901234567890", '"yesterday"', '""', "true", "null", "[1]"],
)  # fmt: skip
def test_others_name_none(content):
    assert time(content) is None


def test_a_value_that_is_no_object_has_no_time():
    assert TimeReader("at").of(b"[1]") is None
    assert TimeReader("at").of(b"broken") is None
    assert TimeReader("a.b").of(b'{"a": {"b": 5}}') == 5000
