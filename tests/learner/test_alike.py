"""Marks are equal where records are; the share of equal ones is what a loop counts."""

import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis.strategies import integers, lists, sampled_from, tuples

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.scoring.reference import marks

OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
VALUES = sampled_from(
    [0.0, -0.0, 1.0, np.nextafter(1.0, 2.0), -1.0, 1e-310, 1e308, np.nan, -np.nan, OTHER_NAN]
)
SLOTS = integers(0, 2)


def told(rows, slots):
    """Return what tells rows apart: values, with one zero and one missing, and the slot."""
    return [
        (slot, *(None if np.isnan(x) else float(x) + 0.0 for x in row))
        for row, slot in zip(rows, slots, strict=True)
    ]


@given(lists(tuples(VALUES, VALUES, VALUES, SLOTS), max_size=40))
@example([(1.0, -1.0, 0.0, 0), (-1.0, 1.0, 0.0, 0)])
def test_marks_are_equal_where_rows_and_slots_are_and_nowhere_else(drawn):
    table = np.array(drawn).reshape(-1, 4)
    rows, slots = table[:, :3], table[:, 3].astype(np.int64)
    found, expected = marks(rows, slots), told(rows, slots)
    assert ((found >= 0) & (found < 1)).all()
    for i, one in enumerate(expected):
        assert (found == found[i]).tolist() == [one == other for other in expected]


def test_a_hundred_thousand_rows_that_differ_have_marks_that_differ():
    rows = np.arange(100_000.0).reshape(-1, 1)
    assert len(set(marks(rows, np.zeros(len(rows), np.int64)).tolist())) == len(rows)
    assert len(set(marks(0 * rows, np.arange(len(rows))).tolist())) == len(rows)


@pytest.mark.parametrize("value", [0.0, -0.0, 2.5])
def test_the_state_of_a_stream_that_never_varies_does_not_depend_on_how_it_is_cut(value):
    rows = np.full((600, 3), value)
    whole, pieces = StreamScorer(OSLRAU()), StreamScorer(OSLRAU())
    whole.process(rows)
    for start in range(0, 600, 7):
        pieces.process(rows[start : start + 7])
    assert pieces.to_bytes() == whole.to_bytes()
