"""What a topic of JSON says of records that name a schema."""

import pytest

from faust_oslrau.topics import FeatureDecoder


@pytest.mark.parametrize(
    ("value", "reason", "is_told"),
    [
        (b"\0\0\0\0\1abc", "not_json", True),
        (b"\0\0\0\0\1\xff\xfe", "not_utf8", True),
        (b"\0\0\0\0\1", "not_json", False),
        (b"abcdef", "not_json", False),
    ],
)
def test_a_record_that_looks_as_if_it_named_a_schema_is_told_of_the_setting(value, reason, is_told):
    ((_, rejection),) = FeatureDecoder(["x"], 100).decode([value]).rejected
    assert rejection.reason == reason
    assert ("the setting format may have to be avro" in rejection.detail) == is_told
