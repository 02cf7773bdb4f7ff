"""Fields that are categories: their codes, and the records that have them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.topics import FeatureDecoder, Reason
from faust_oslrau.topics.categories import LONGEST_TEXT, CategoryCodes, text_of

LIMIT = 100_000


def decoded(decoder, *rows):
    return decoder.decode([json.dumps(row).encode() for row in rows])


def names(decoder, block):
    """Return the categories of the rows as texts, None for missing ones."""
    columns = block.rows[:, -decoder.n_categories :]
    return [[decoder.codes.texts.get(code) for code in row] for row in columns.tolist()]


@given(st.lists(st.text(), unique=True))
def test_a_code_depends_on_the_text_alone(texts):
    some, others = CategoryCodes(), CategoryCodes(reversed(texts))
    assert [some[text] for text in texts] == [others[text] for text in texts]
    assert len({some[text] for text in texts}) == len(texts)
    assert all(code == int(code) < 2**52 for code in some.values())


def test_what_is_kept_has_its_text_and_its_code():
    codes = CategoryCodes(["web", "batch", "night"])
    web, night = codes["web"], codes["night"]
    codes.keep([web, night, 1.0])
    assert codes.texts == {web: "web", night: "night"}
    assert codes["web"] == web


def test_of_a_long_text_the_first_characters_count():
    decoder = FeatureDecoder(("a", "s"), LIMIT, kinds={"s": "category"})
    block = decoded(decoder, *({"a": 1, "s": LONGEST_TEXT * "x" + end} for end in ("y", "z", "")))
    assert names(decoder, block) == [[LONGEST_TEXT * "x"]] * 3


@pytest.mark.parametrize(
    ("content", "text"),
    [("7", "7"), (7, "7"), (7.0, "7"), (7.5, "7.5"), (True, "true"), (False, "false"), ("", ""),
     (None, None), ([], None), ({}, None), (10**400, None)],
)  # fmt: skip
def test_the_text_of_a_category_and_none_of_what_is_none(content, text):
    assert text_of(content) == text


def test_chosen_fields_are_numbers_unless_their_kind_says_otherwise():
    decoder = FeatureDecoder(("s", "a"), LIMIT, kinds={"s": "category"})
    block = decoded(decoder, {"a": 1, "s": "x"}, {"a": "x", "s": 1}, {"a": 2, "s": True}, {"s": 1})
    assert decoder.fields == ("a", "s")
    assert names(decoder, block) == [["x"], ["true"], ["1"]]
    (rejected,) = block.rejected
    assert rejected[1].reason == Reason.NOT_A_NUMBER


@pytest.mark.parametrize("field", ["s", "deep.s"])  # read by two readers
@pytest.mark.parametrize(("content", "found"), [([1], "a list"), ({"x": 1}, "an object")])
def test_a_list_or_an_object_is_no_category(field, content, found):
    decoder = FeatureDecoder(("a", field), LIMIT, kinds={field: "category"})
    row = {"a": 1, "s": content, "deep": {"s": content}}
    ((_, rejection),) = decoded(decoder, row).rejected
    assert rejection.reason == Reason.NOT_A_CATEGORY
    assert rejection.detail == (
        f"expected a string, a number or a boolean in field '{field}', got {found}"
    )
