"""Which fields a partition's first records choose."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.topics import FieldChoice, Reason
from faust_oslrau.topics.columns import MOST_CONTENTS
from faust_oslrau.topics.field_choice import MAX_CATEGORIES, MAX_NUMBERS

LIMIT = 100_000


def choice(kinds=(), never_chosen=()):
    return FieldChoice(LIMIT, dict(kinds), dict(never_chosen))


def rejection(document, kinds=()):
    return choice(kinds).rejection(json.dumps(document).encode())


def requests(n=240):
    """Records with fields of each sort; the first one lacks some of them."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "latency": rng.normal(),
            "http": {"status": int(rng.choice([200, 404, 503]))},
            "errors": int(rng.poisson(0.1)),
            "ok": bool(rng.random() < 0.9),
            "service": str(rng.choice(["web", "db"])),
            "trace": f"{rng.integers(2**60):x}",
            "seq": i,
            "at": 1_790_000_000 + i // 3,
            "tags": [1, 2],
            "price": f"{rng.random():.2f}",
            "gone": None,
        }
        for i in range(n)
    ]
    for name in ("errors", "service"):
        del rows[0][name]
    return [json.dumps(row).encode() for row in rows]


def test_numbers_and_categories_are_chosen_and_others_left_out_with_the_reason():
    found = choice(never_chosen={"service": "the entity"}).choose(requests())
    assert found.numbers == ("errors", "latency") and found.counts == ("errors",)
    assert found.categories == ("http.status", "ok")
    assert found.left_out == (
        "at (times)", "price (numbers as text)", "seq (only grows)", "service (the entity)",
        "tags (hardly any number or text)", "trace (hardly any text comes again)",
    )  # fmt: skip


def test_what_settings_say_of_a_field_counts():
    kinds = {
        "seq": "number", "trace": "category", "price": "number", "http.status": "number",
        "ok": "ignored",
    }  # fmt: skip
    found = choice(kinds).choose(requests())
    assert found.numbers == ("errors", "http.status", "latency", "price", "seq")
    assert found.categories == ("service", "trace")
    assert "ok (ignored)" in found.left_out


def test_numbers_that_only_grow_are_better_than_none():
    values = [json.dumps({"seq": i, "at": 1_790_000_000 + i}).encode() for i in range(240)]
    assert choice(never_chosen={"at": "the time"}).choose(values).numbers == ("seq",)


def test_of_too_many_fields_those_that_most_records_have_are_taken():
    row = {f"n{i:04}": 0.5 for i in range(MAX_NUMBERS + 10)}
    values = [json.dumps(row | {"n0003": None if i % 9 else 0.5}).encode() for i in range(90)]
    found = choice().choose(values)
    assert len(found.numbers) == MAX_NUMBERS and "n0003" not in found.numbers
    assert "n1024" in found.numbers and "n0003 (too many)" in found.left_out


def test_of_too_many_fields_of_all_records_the_first_names_are_taken():
    numbers, texts = ({f"{t}{i:04}": of for i in range(1000)} for t, of in (("n", 1), ("s", "x")))
    values = [json.dumps({**numbers, **texts, f"z{i}": 1}).encode() for i in range(50)]
    found = choice().choose(values)
    assert len(found.numbers) == MAX_NUMBERS and len(found.categories) == MAX_CATEGORIES
    assert "s0016 (too many)" in found.left_out and "z9 (too many)" in found.left_out


def test_of_too_many_categories_those_that_are_named_come_first_and_constant_ones_last():
    constant = {f"a{i}": "v1" for i in range(MAX_CATEGORIES)}
    values = [
        json.dumps(constant | {"x": 0.5 + i, "type": "ab"[i % 2], "zone": "x"}).encode()
        for i in range(40)
    ]
    kinds = {"zone": "category"}
    found = choice(kinds).choose(values)
    assert {"type", "zone"} < {*found.categories} and len(found.categories) == MAX_CATEGORIES
    kinds |= dict.fromkeys(constant, "category")
    assert {*choice(kinds).choose(values).categories} == {*kinds}


def test_a_named_field_is_chosen_however_few_records_have_it():
    rare = {"kind": "x", "load": 1.5}
    values = [
        json.dumps({"x": i % 7 + 0.5} | (rare if i == 7 else {})).encode() for i in range(240)
    ]
    found = choice({"kind": "category", "load": "number"}).choose(values)
    assert (found.numbers, found.categories, found.sparse) == (("load", "x"), ("kind",), ())


def test_a_record_needs_a_number_or_a_text_that_may_be_chosen():
    assert choice().rejection(None).reason == Reason.NO_VALUE
    for document in ({}, {"a": [1]}, {"a": None}):
        assert rejection(document).reason == Reason.NO_FEATURES
    for document in ({"a": 1}, {"a": "x"}):
        assert rejection(document) is None
        assert rejection(document, {"a": "category"}) is None
        assert rejection(document, {"a": "ignored"}).reason == Reason.NO_FEATURES
    assert rejection({"a": "1.5"}, {"a": "number"}) is None
    assert rejection({"a": "x"}, {"a": "number"}).reason == Reason.NO_FEATURES
    assert rejection({"a": True}) is None


def test_records_without_any_number_choose_categories():
    rows = [{"user": f"u{i % 7}", "ok": "yes", "session": f"{i:x}"} for i in range(240)]
    values = [json.dumps(row).encode() for row in rows]
    found = choice().choose(values)
    assert (found.numbers, found.categories) == ((), ("ok", "user"))
    assert found.left_out == ("session (hardly any text comes again)",)
    found = choice({"user": "ignored", "ok": "ignored"}).choose(values)  # better than none
    assert found.categories == ("session",)


def test_a_record_with_too_many_numbers_or_one_beyond_a_double_does_not_choose():
    for content in (1, "x"):
        document = dict.fromkeys((f"x{i}" for i in range(MOST_CONTENTS + 1)), content)
        assert rejection(document).reason == Reason.NO_FEATURES
    assert choice().rejection(b'{"x": 1, "y": 1e400}').reason == Reason.NOT_FINITE
    assert choice().rejection(b'{"x": 2, "list": [1e400]}') is None


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
documents = st.recursive(
    scalars, lambda inner: st.dictionaries(st.sampled_from(["a", "b", "a.b", ""]), inner)
)
kinds = st.dictionaries(
    st.sampled_from(["a", "a.b", ""]), st.sampled_from(["number", "category", "ignored"])
)


@pytest.mark.parametrize("times", [1, 30])
@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), documents)), kinds)
def test_whatever_valid_records_hold_they_choose_something_once(times, some, kinds):
    look = choice(kinds)
    values = [json.dumps(document).encode() for document in some] * times
    values = [value for value in values if look.rejection(value) is None]
    found = look.choose(values)
    fields = found.numbers + found.categories
    assert len(set(fields)) == len(fields)
    assert (len(fields) > 0) == (len(values) > 0)
