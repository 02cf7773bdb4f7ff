"""Which entity a record belongs to."""

import json

import pytest

from faust_oslrau.topics import EntityReader, Record


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
        ('"pump-7"', b"pump-7"),
        ('"M\\u00fcnchen"', "München".encode()),
        ('""', b""),
        ("7", b"7"),
        ("7.0", b"7"),
        ("0.7e1", b"7"),
        ('"7"', b"7"),
        ("-0.0", b"0"),
        ("1.5", b"1.5"),
        ("9007199254740993", b"9007199254740993"),
        ("1e16", b"10000000000000000"),
        ("123456789012345678901234567890", b"1.2345678901234568e+29"),
        ("1.2345678901234568e29", b"1.2345678901234568e+29"),
        ("1e400", None),
        ("null", None),
        ("true", None),
        ("[1]", None),
        ('{"a": 1}', None),
        ('"\\ud800"', None),
    ],
)
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
