import json
import math

import numpy as np
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from faust_oslrau.topics import FeatureDecoder, Reason
from faust_oslrau.topics.documents import MAX_DEPTH

LIMIT = 1_000_000


def decode_one(value, fields=("x",), limit=LIMIT):
    block = FeatureDecoder(fields, limit).decode([value])
    assert len(block.rows) + len(block.rejected) == 1
    return block.rows[0] if len(block.rows) else block.rejected[0][1]


def reason_of(value, fields=("x",), limit=LIMIT):
    return decode_one(value, fields, limit).reason


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"x": 1.5}', 1.5),
        (b'{"x": 3}', 3.0),
        (b'{"x": true}', 1.0),
        (b'{"x": false}', 0.0),
        (b'{"x": 9007199254740993}', 9007199254740992.0),
        (b'{"x": 18446744073709551616}', 2.0**64),
        (b'{"x": -123456789012345678901234567890}', -1.2345678901234568e29),
        (b'{"x": 1e-400}', 0.0),
        (b'{"x": 1, "x": 2}', 2.0),
        (b' {"x": 1, "note": "\xc3\xa9"}\n', 1.0),
        (b'{"x": 1, "y": 1e400, "note": "\xc3\xa9"}', 1.0),
        (b'{"\\u0078": 1}', 1.0),
    ],
)
def test_numbers_of_any_kind_become_float64(value, expected):
    assert decode_one(value).tolist() == [expected]


BAD = {
    Reason.NO_VALUE: [None],
    Reason.NOT_JSON: [
        b"", b" ", b'{"x": 1', b'{"x": 1}}', b'{"x": 1}\x00', b"{'x': 1}", b'{"x": 01}',
        b'{"x": NaN}', b'{"x": Infinity}', b'{"x": -Infinity}', b'{"x": 1, "note": "\\ud800"}',
        b'\xef\xbb\xbf{"x": 1}', '{"x": 1}'.encode("utf-16-le"), b'{"x": ' + b"[" * 100,
        b'{"x": 1, "y": 1e400, "z": NaN}', b'{"x": 1, "y": 1e400, "z": "\\ud800"}',
    ],
    Reason.TOO_DEEP: [b"[" * 5000 + b"]" * 5000, b'{"x": ' + b"[" * 500_000],
    Reason.NOT_UTF8: [b"\xff", '{"x": 1}'.encode("utf-16"), b'{"x": 1, "note": "\xed\xa0\x80"}'],
    Reason.NOT_FINITE: [b'{"x": 1e400}', b'{"x": -1e400}', b'{"x": 1' + b"0" * 400 + b"}"],
    Reason.NOT_AN_OBJECT: [b"null", b"true", b"3", b'"x"', b'["x"]'],
    Reason.NOT_A_NUMBER: [b'{"x": "1"}', b'{"x": [1]}', b'{"x": {"y": 1}}'],
    Reason.NO_FEATURES: [b"{}", b'{"y": 1}', b'{"x": null}'],
}  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "value"), [(reason, value) for reason, values in BAD.items() for value in values]
)
def test_each_kind_of_bad_record_gets_its_reason(reason, value):
    assert reason_of(value) is reason


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
    rejection = decode_one(value)
    assert rejection.reason == reason
    assert ("the setting format may have to be avro" in rejection.detail) == is_told


@pytest.mark.parametrize("field", ['a"b', "a\\b", "a\nb", "\u00e9", "", "a b", "field0"])
def test_fields_may_have_any_name(field):
    value = json.dumps({"x": 1, field: 2.5}).encode()
    assert decode_one(value, fields=("x", field)).tolist() == [1.0, 2.5]
    assert decode_one(orjson.dumps({"x": 1, field: 2.5}), ("x", field)).tolist() == [1.0, 2.5]


def test_a_field_may_be_chosen_twice():
    assert decode_one(b'{"x": 1}', fields=("x", "x")).tolist() == [1.0, 1.0]


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**40), 10**40))
def test_numbers_are_the_nearest_doubles_to_what_is_written(number):
    for fields in (("x",), ("x", "v.a")):  # read in two ways
        assert decode_one(json.dumps({"x": number}).encode(), fields)[0] == float(number)


def test_a_record_is_too_large_only_beyond_the_limit():
    value = b'{"x":1}'
    assert decode_one(value, limit=len(value)).tolist() == [1.0]
    assert reason_of(value, limit=len(value) - 1) is Reason.TOO_LARGE


def test_the_rejection_names_the_field_and_what_it_holds():
    rejection = decode_one(b'{"a": 1, "b": {"c": "high"}}', fields=("a", "b.c"))
    assert rejection.detail == "expected a number in field 'b.c', got a string"


@pytest.mark.parametrize("field", ["", "a.b", ".".join("a" * MAX_DEPTH)])
def test_a_field_is_found_however_deep_it_lies_and_however_its_name_looks(field):
    inner = 1
    for key in reversed(field.split(".")):
        inner = {key: inner}
    assert decode_one(json.dumps(inner).encode(), (field,)).tolist() == [1.0]
    if field:
        assert decode_one(json.dumps({field: 2, "x": 3}).encode(), (field,)).tolist() == [2.0]


json_documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "y", "v", "v.a", "a", "b"]), inner, max_size=4)
    ),
    max_leaves=8,
)
values = st.one_of(
    st.none(),
    st.binary(max_size=30),
    json_documents.map(lambda document: json.dumps(document).encode()),
)
choices = st.sampled_from([("x",), ("x", "y"), ("v.a", "x", "v.b", "y")])


@given(st.lists(values, max_size=12), choices)
@example([b'{"x": 1}', b'{"x": "1"}', None], ("x",))
def test_any_bytes_become_one_row_or_one_rejection(block, fields):
    decoder = FeatureDecoder(fields, 200)
    decoded = decoder.decode(block)
    places = decoded.positions + [position for position, _ in decoded.rejected]
    assert sorted(places) == list(range(len(block)))
    assert len(decoded.rows) == len(decoded.positions)
    assert not np.isinf(decoded.rows).any()
    assert not np.isnan(decoded.rows).all(axis=1).any()
    assert decoded.rows.flags.c_contiguous and decoded.rows.dtype == np.float64


@given(st.lists(values, max_size=12), choices)
def test_a_block_decodes_as_its_records_one_by_one(block, fields):
    whole, single = FeatureDecoder(fields, 200), FeatureDecoder(fields, 200)
    together = whole.decode(block)
    alone = [single.decode([value]) for value in block]
    assert whole.fields == single.fields
    assert [r for _, r in together.rejected] == [r for one in alone for _, r in one.rejected]
    rows = [row.tobytes() for one in alone for row in one.rows]
    assert [row.tobytes() for row in together.rows] == rows


@given(st.dictionaries(st.sampled_from(["x", "v", "v.a"]), json_documents, min_size=1), choices)
@example({"v.a": 1, "v": {"a": 2, "b": 3}, "x": None}, ("v.a", "x", "v.b", "y"))
@example({"v": "text", "x": 1}, ("v.a", "x", "v.b", "y"))
def test_a_row_holds_what_the_names_find(document, fields):
    block = FeatureDecoder(fields, LIMIT).decode([json.dumps(document).encode()])
    for row in block.rows:
        np.testing.assert_array_equal(row, [naive_number(document, field) for field in fields])


def naive_number(document, field):
    if field in document:
        content = document[field]
    else:
        content = document
        for key in field.split("."):
            content = content.get(key) if isinstance(content, dict) else None
    return math.nan if content is None else float(content)


def test_numbers_not_above_their_fields_bound_are_rejected_and_named():
    rows = [{"a": 1, "b": -5}, {"a": 0, "b": 2}, {"b": 3}, {"a": -1, "b": -9}, {"a": 2}, []]
    decoder = FeatureDecoder(("a", "b"), LIMIT, {"a": 0.0, "b": -8.0})
    block = decoder.decode([orjson.dumps(row) for row in rows])
    assert block.positions == [0, 2, 4]
    reasons = [(at, rejection.reason) for at, rejection in block.rejected]
    beyond = Reason.OUT_OF_RANGE
    assert reasons == [(1, beyond), (3, beyond), (5, Reason.NOT_AN_OBJECT)]
    assert block.rejected[0][1].detail == "expected more than 0 in field 'a', got 0"


def test_contents_of_another_type_count_as_missing_where_that_is_wanted():
    decoder = FeatureDecoder(("a", "b", "of.c"), LIMIT, without_type=["a", "b", "of.c"])
    values = [
        b'{"a": 1, "b": 2, "of": {"c": 3}}', b'{"a": "1", "b": 2, "of": {"c": [3]}}',
        b'{"a": {}, "b": 2, "of": 7}', b'{"a": "x", "b": "y"}', b'{"a": 1e999, "b": "y"}',
    ]  # fmt: skip
    block = decoder.decode(values)
    nan = np.nan
    np.testing.assert_array_equal(block.rows, [[1, 2, 3], [nan, 2, nan], [nan, 2, nan]])
    assert block.wrong_types == {"a": 3, "b": 2, "of.c": 1}
    reasons = [(position, rejection.reason) for position, rejection in block.rejected]
    assert reasons == [(3, Reason.NO_FEATURES), (4, Reason.NOT_FINITE)]
    assert decoder.decode(values[:1]).wrong_types == {}


@pytest.mark.parametrize(
    ("text", "number"), [("20.31", 20.31), ("-3", -3.0), (" 1e3 ", 1000.0), ("007", 7.0)]
)
def test_a_field_that_is_said_to_be_a_number_may_hold_it_as_text(text, number):
    decoder = FeatureDecoder(("x", "y"), LIMIT, kinds={"x": "number"})
    block = decoder.decode([orjson.dumps({"x": text, "y": 1}), b'{"x": 5, "y": 2}'])
    assert block.rows.tolist() == [[number, 1.0], [5.0, 2.0]]


@pytest.mark.parametrize("text", ["", "warm", "nan", "inf", "1e400", "1_000", "20,31"])
def test_a_text_without_a_number_is_of_a_wrong_type(text):
    decoder = FeatureDecoder(("x", "y"), LIMIT, kinds={"x": "number"})
    ((_, rejection),) = decoder.decode([orjson.dumps({"x": text, "y": 1})]).rejected
    assert rejection.reason == Reason.NOT_A_NUMBER
