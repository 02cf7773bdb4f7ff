"""Changes of what records hold: fields that come, go, or get another type or unit."""

import json
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.topics import FieldChange, FieldState, FieldWatch
from faust_oslrau.topics.field_watch import EVERY, SAMPLES

WINDOW = EVERY * SAMPLES
RNG = np.random.default_rng(3)


def values(n, **fields):
    """Return n records; a field is a value, or a function that makes one."""
    return [json.dumps({f: v() if callable(v) else v for f, v in fields.items()}) for _ in range(n)]


def changes(*parts, chosen=("a",)):
    found = FieldWatch().take([text.encode() for part in parts for text in part], chosen)
    return [change for _, change in found]


def noise():
    return 20 + RNG.normal()


def test_a_stream_that_stays_as_it_is_has_no_changes():
    assert changes(values(20 * WINDOW, a=noise, b="x", c=None, d=[1], e={"f": 1})) == []


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3])
def test_a_field_that_only_some_records_have_is_no_change(share):
    def some():
        return 1 if RNG.random() < share else None

    assert changes(values(20 * WINDOW, a=noise, b=some), chosen=("a", "b")) == []


def test_a_renamed_field_vanishes_and_another_one_appears_within_two_windows():
    records = values(3 * WINDOW + 300, a=noise) + values(2 * WINDOW, inner={"a": 1.0})
    found = FieldWatch().take([text.encode() for text in records], ("a",))
    assert {change.state: change.field for _, change in found} == {
        FieldState.APPEARED: "inner.a",
        FieldState.VANISHED: "a",
    }
    assert all(3 * WINDOW + 300 < position < 5 * WINDOW for position, _ in found)


def test_a_field_that_comes_and_goes_is_told_ever_more_rarely():
    parts = [
        values(2 * WINDOW, a=noise) if i % 2 else values(2 * WINDOW, b=1) for i in range(1, 40)
    ]
    told = [c.state for c in changes(*parts) if c.field == "a"]
    assert told[:2] == [FieldState.VANISHED, FieldState.APPEARED]
    assert len(told) == 2


@pytest.mark.parametrize("content", ["12.5", [12.5]])
def test_a_type_that_changes_is_told_once(content):
    name = {str: "text", list: "list"}[type(content)]
    told = changes(values(3 * WINDOW, a=noise), values(5 * WINDOW, a=content))
    assert told == [FieldChange(FieldState.TYPE, "a", before="number", now=name)]


@pytest.mark.parametrize("factor", [1000.0, 60.0, 0.001])
@pytest.mark.parametrize("at", [3 * WINDOW, 3 * WINDOW + 500])
def test_another_unit_is_told_once_with_its_factor(factor, at):
    told = changes(values(at, a=noise), values(5 * WINDOW, a=lambda: factor * noise()))
    assert [(c.state, c.field) for c in told] == [(FieldState.UNIT, "a")]
    assert told[0].factor == pytest.approx(factor, rel=0.1)


@pytest.mark.parametrize("unit", [10, 20, 40, 7])
def test_senders_that_take_turns_are_all_looked_at(unit):
    levels = (10.0 ** np.linspace(-1, 3, unit)).tolist()
    records = [
        json.dumps({"a": levels[i % unit] * noise(), f"of-{i % 2}": 1}).encode()
        for i in range(40 * WINDOW)
        if i % 4999  # or each would always come at the same position
    ]
    assert FieldWatch().take(records, ("a", "of-0", "of-1")) == []


def test_batches_and_types_that_come_again_are_told_ever_more_rarely():
    def text_or_number():
        return "x" if RNG.random() < 0.5 else 1

    nights = [
        part
        for _ in range(10)
        for part in (values(6 * WINDOW, a=noise), values(3 * WINDOW, a=lambda: 100 * noise()))
    ]
    assert 1 <= len(changes(*nights)) <= 3
    later = values(20 * WINDOW, a=noise), values(3 * WINDOW, a=lambda: 100 * noise())
    told = changes(*nights, *later)[len(changes(*nights)) :]
    assert [change.state for change in told] == [FieldState.UNIT]  # after weeks without one
    assert len(changes(values(150 * WINDOW, a=text_or_number))) < 8


def test_another_unit_after_known_ones_is_told():
    parts = [values(4 * WINDOW, a=lambda f=f: f * noise()) for f in (1, 100, 1, 100, 1e-4)]
    assert changes(*parts)[-1].factor == pytest.approx(1e-6, rel=0.2)


def of_services(levels):
    """Return numbers of which each is of one of several services."""
    return lambda: float(RNG.choice(levels)) * (1.0 + 0.01 * RNG.normal())


@pytest.mark.parametrize(
    ("before", "later"),
    [
        *((noise, later) for later in (
            lambda: noise() + 200, lambda: 20 + 40 * RNG.normal(), lambda: 4 * noise(),
            lambda: 0.0, lambda: RNG.lognormal(2, 3), lambda: -noise(),
        )),
        # of services with levels of 1, 10 and 100 others come more often
        (of_services([1, 1, 1, 10]), of_services([1, 10, 10, 100])),
        (lambda: RNG.normal(), lambda: 10 * RNG.normal()),  # without a level
    ],
)  # fmt: skip
def test_a_change_of_level_spread_or_load_is_no_change_of_unit(before, later):
    assert changes(values(3 * WINDOW, a=before), values(3 * WINDOW, a=later)) == []


def test_what_is_no_record_is_passed_over():
    odd = ["", "{", "[1]", "1e999", "[" * 5000, '{"a": 1e999}', '{"a": NaN}', "{}", '{"": {"": 1}}']
    odd += ['{"%s": 1}' % ("x" * 300)]
    assert changes(odd * 3000) == [] == FieldWatch().take([None] * 5000, ("a",))


def test_names_that_are_values_do_not_fill_the_memory():
    watch = FieldWatch()
    for i in range(200):
        names = {f"{i}-{j}": 1 for j in range(40)}
        watch.take([json.dumps({"a": 1} | names).encode()] * WINDOW, ("a",))
    assert len(watch.known) <= 1024


CHANGING = [text.encode() for text in (
    values(2500, a=noise, b=1) + values(2300, a=lambda: 1000 * noise(), c="x")
    + values(2000, a="7", b=1)
)]  # fmt: skip


@given(cuts=st.lists(st.integers(0, len(CHANGING)), max_size=6))
def test_changes_do_not_depend_on_cuts_and_restarts(cuts):
    whole = FieldWatch().take(CHANGING, ("a", "b"))
    assert {change.state for _, change in whole} == set(FieldState)
    watch, found = FieldWatch(), []
    bounds = [0, *sorted(cuts), len(CHANGING)]
    for start, end in pairwise(bounds):
        taken = watch.take(CHANGING[start:end], ("a", "b"))
        found += [(start + position, change) for position, change in taken]
        watch = msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(watch))), FieldWatch)
    assert found == whole
