"""When a record happened."""

import json

import pytest

from faust_oslrau.topics import Record, TimeReader


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
        ('"01/Foo/2026:00:00:00 +0000"', None),
        ('"20260501100000"', None),
        ('"42"', None),
        ("0", 0),
        ("-1", None),
        ('"1969-12-31T23:59:59Z"', None),
        ("1e300", None),
        ("123456789012345678901234567890", None),
        ('"yesterday"', None),
        ('""', None),
        ("true", None),
        ("null", None),
        ("[1]", None),
    ],
)
def test_numbers_and_texts_name_times(content, expected):
    assert time(content) == expected


def test_a_value_that_is_no_object_has_no_time():
    assert TimeReader("at").of(b"[1]") is None
    assert TimeReader("at").of(b"broken") is None
    assert TimeReader("a.b").of(b'{"a": {"b": 5}}') == 5000
