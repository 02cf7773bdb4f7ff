"""Which records are valid, whichever reader looks at them and from however deep a stack."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from faust_oslrau.topics import FeatureDecoder, Reason
from faust_oslrau.topics.documents import MAX_DEPTH, depth

# The first are read as top-level fields, the others as names that may be paths.
FIELDS = ("a", "b")
PATHS = ("a", "b", "v.w")


def decode(values, fields=FIELDS):
    """Return the values of `a` and `b` of each record, None where missing, or its rejection."""
    block = FeatureDecoder(fields, 1_000_000).decode(values)
    rows = [[None if math.isnan(x) else x for x in row[:2]] for row in block.rows.tolist()]
    found = dict(block.rejected) | dict(zip(block.positions, rows, strict=True))
    return [found[position] for position in range(len(values))]


def from_deep_stack(frames, function, *arguments):
    if frames == 0:
        return function(*arguments)
    return from_deep_stack(frames - 1, function, *arguments)


def nested(levels, inner=b"1e400"):
    """Return a record of so many levels, the record itself among them."""
    lists = levels - 1
    return b'{"a":1,"b":2,"zz":1e400,"y":' + b"[" * lists + inner + b"]" * lists + b"}"


brackets = st.lists(st.sampled_from([b"[", b'{"k":', b'{"{[":', b'{"\\"[":']), max_size=8).map(
    lambda opened: (
        b"".join(opened),
        b"".join(b"]" if each == b"[" else b"}" for each in reversed(opened)),
    )
)
scalars = st.sampled_from(
    [b"1e400", b"-1e400", b"9" * 400, b"9" * 5000, b'"[[{"', b'"\\"]"', b"NaN", b'"\\ud800"', b"1"]
)
unchosen = st.builds(
    lambda pair, times, scalar: pair[0] * times + scalar + pair[1] * times,
    brackets,
    st.integers(0, 200),
    scalars,
)
records = st.builds(
    lambda a, b, other, end: b'{"a":%b,"b":%b,"y":%b%b' % (a, b, other, end),
    st.sampled_from([b"1", b"null", b"1e400", b'"1"', b"[[1]]"]),
    st.sampled_from([b"2.5", b"true", b"-1e400"]),
    unchosen,
    st.sampled_from([b"}", b"", b"}}", b',"v":{"w":1e400}}']),
)


@given(st.lists(records, min_size=1, max_size=5), st.integers(1, 300))
def test_no_record_is_valid_from_one_depth_of_the_stack_and_not_from_another(values, frames):
    for fields in (FIELDS, PATHS):
        assert from_deep_stack(frames, decode, values, fields) == decode(values, fields)


@pytest.mark.parametrize("fields", [FIELDS, PATHS])
def test_python_s_stack_does_not_decide_how_deep_a_record_may_be(fields):
    values = [nested(levels) for levels in range(100, 1100, 10)]
    assert from_deep_stack(300, decode, values, fields) == decode(values, fields)


@given(records.filter(lambda value: b'"v":' not in value))
@example(nested(2))
@example(nested(MAX_DEPTH + 1))
def test_names_with_and_without_dots_take_the_same_records(value):
    assert decode([value], FIELDS) == decode([value], PATHS)


@pytest.mark.parametrize("fields", [FIELDS, PATHS])
def test_records_may_be_nested_up_to_the_limit(fields):
    within, beyond = decode([nested(MAX_DEPTH), nested(MAX_DEPTH + 1)], fields)
    assert within == [1, 2]
    assert beyond.reason is Reason.TOO_DEEP
    assert beyond.detail == "401 levels of nesting, at most 400 are taken"


@pytest.mark.parametrize("fields", [FIELDS, PATHS])
@pytest.mark.parametrize(
    "many", [b'"' + b"[{" * 500 + b'"', b'"\\"' + b"[{" * 500 + b'"', b"[" + b"[]," * 500 + b"1]"]
)
def test_brackets_in_strings_and_side_by_side_are_no_nesting(many, fields):
    assert decode([b'{"a":1,"b":2,"y":%b}' % many], fields) == [[1, 2]]


@pytest.mark.parametrize("fields", [FIELDS, PATHS])
def test_the_chosen_field_with_a_number_beyond_a_double_is_named(fields):
    (rejection,) = decode([b'{"a":1,"y":1e400,"b":-1e400}'], fields)
    assert rejection.reason is Reason.NOT_FINITE
    assert rejection.detail == "expected a number within the range of a double in field 'b'"


@given(st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=20))
def test_depth_is_that_of_the_deepest_list(lists):
    def levels(each):
        return 1 + max(map(levels, each), default=0)

    assert depth(str(lists).encode()) == levels(lists)
