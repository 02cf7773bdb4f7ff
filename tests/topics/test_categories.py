"""Fields that are categories: their codes, and the records that have them."""

from __future__ import annotations

import json

import numpy as np
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
    decoder = FeatureDecoder(None, LIMIT)
    block = decoded(decoder, *({"a": 1, "s": LONGEST_TEXT * "x" + end} for end in ("y", "z", "")))
    assert names(decoder, block) == [[LONGEST_TEXT * "x"]] * 3


@pytest.mark.parametrize(
    ("content", "text"),
    [("7", "7"), (7, "7"), (7.0, "7"), (7.5, "7.5"), (True, "true"), (False, "false"), ("", "")],
)
def test_the_text_of_a_category(content, text):
    assert text_of(content) == text


@pytest.mark.parametrize("content", [None, [], {}, 10**400])
def test_what_is_no_category_has_no_text(content):
    assert text_of(content) is None


def test_auto_takes_strings_as_categories_behind_the_numbers():
    decoder = FeatureDecoder(None, LIMIT)
    rows = {"b": 1.5, "service": "web", "a": {"x": 2, "k": "y"}}, {"b": 1, "service": "db"}
    block = decoded(decoder, *rows)
    assert decoder.fields == ("a.x", "b", "a.k", "service")
    assert decoder.n_categories == 2
    assert names(decoder, block) == [["y", "web"], [None, "db"]]
    assert np.array_equal(block.rows[:, :2], [[2.0, 1.5], [np.nan, 1.0]], equal_nan=True)


def test_kinds_say_which_fields_are_categories_and_which_are_ignored():
    kinds = {"status": "category", "name": "ignored", "n": "ignored"}
    decoder = FeatureDecoder(None, LIMIT, kinds=kinds)
    block = decoded(decoder, {"status": 503, "name": "x", "n": 1, "a": 1, "ok": True})
    assert decoder.fields == ("a", "ok", "status")
    assert names(decoder, block) == [["503"]]
    assert set(decoder.left_out) == {"name (ignored)", "n (ignored)"}


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


def test_a_record_with_strings_only_is_rejected():
    ((_, rejection),) = decoded(FeatureDecoder(None, LIMIT), {"s": "x"}).rejected
    assert rejection.reason == Reason.NO_FEATURES


def test_of_many_strings_the_first_sixteen_names_are_taken():
    decoder = FeatureDecoder(None, LIMIT)
    decoded(decoder, {"a": 1, **{f"s{i:02}": "x" for i in range(20)}})
    assert decoder.n_categories == 16
    assert decoder.left_out == tuple(f"s{i} (too many)" for i in range(16, 20))
