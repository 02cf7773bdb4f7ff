"""The reference set: what p-values are shares of, what is held back from it, and for how long."""

import bisect
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from interpreter import examples

from faust_oslrau.learner.scoring.calibration import Calibration
from faust_oslrau.learner.scoring.reference import FAR, RECENT, SETTLED, YOUNG, Reference
from faust_oslrau.learner.scoring.reference import marks as marks_of

FAULT = -1e6


class Naive:
    """The same rules, record by record, with sorted lists and counting."""

    def __init__(self, adapt_after):
        self.adapt_after = adapt_after
        self.counted, self.marks, self.held = [], [], []

    def admit(self, scores, marks, end):
        """Return the numbers of the records that are learned."""
        fence = Calibration(np.sort(self.counted)).lower_bound(FAR)
        usual, learned = [], []
        for number, score in enumerate(scores, end - len(scores)):
            if score < fence:
                self.held.append((number, score))
                continue
            learned.append(number)
            if score == score:
                usual.append(score)
        if len(self.held) * RECENT >= self.adapt_after * min(end, RECENT):
            learned += [number for number, _ in self.held]
            usual += [score for number, score in self.held if number >= end - RECENT]
            self.held = []
        most = RECENT if end < SETTLED else min(end - YOUNG, RECENT)
        self.counted = (self.counted + usual)[-most:]
        self.marks = (self.marks + [mark for mark in marks if mark == mark])[-RECENT:]
        return learned

    def bounds(self, score, mark):
        """Return between what the p-value lies; below all scores, only that is counted."""
        if not self.counted:
            return None
        ascending = sorted(self.counted)
        n, not_above = len(ascending), bisect.bisect_right(ascending, score)
        alike = self.marks.count(mark) / (len(self.marks) + 1)
        if not_above == 0:
            return alike, max(alike, 1 / (n + 1))
        rank = not_above + float(score > ascending[-1])
        if not_above < n:
            lower, upper = ascending[not_above - 1], ascending[not_above]
            rank += (score - lower) / (upper - lower)
        return (max(alike, rank / (n + 1)),) * 2


def admit(reference, scores, end, marks=None):
    """Admit a batch whose rows are the records' numbers and whose densities are the scores."""
    m = len(scores)
    rows = np.arange(end - m, end, dtype=np.float64)[:, None]
    marks = np.full(m, np.nan) if marks is None else marks
    return rows, reference.admit(rows, scores, scores, marks, end)


def normal(seed, n):
    return np.random.default_rng(seed).normal(size=n)


def filled(n=2048, adapt_after=512):
    """Return a reference set of ``n`` usual scores, and the number of records."""
    reference = Reference(adapt_after)
    admit(reference, normal(0, n), n + YOUNG)
    return reference, n + YOUNG


BATCHES = st.lists(
    st.tuples(
        st.integers(1, 300),  # records
        st.sampled_from([0.0, 0.02, 0.12, 0.13, 1.0]),  # share of faults
        st.sampled_from([0, 1]),  # decimals: with ties, and hardly any
    ),
    max_size=8,
)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), BATCHES, st.sampled_from([0, 1500, RECENT]), st.integers(1, 400))
@example(0, [(1, 1.0, 0), (3, 1.0, 0)], RECENT, 1)  # all far, so that far ones count at once
def test_it_is_what_lists_and_counting_say(seed, batches, before, adapt_after):
    rng = np.random.default_rng(seed)
    reference, naive, end = Reference(adapt_after), Naive(adapt_after), 0
    for m, share, decimals in [(before, 0.0, 3)] * (before > 0) + batches:
        scores = rng.normal(size=m).round(decimals)
        scores[rng.random(m) < share] += FAULT
        scores[rng.random(m) < 0.02] = np.nan
        marks = np.where(rng.random(m) < 0.5, np.nan, rng.integers(0, 4, m) / 8)
        asked, some = np.array([*scores[:5], 9.0, -9.0, 0.0]), np.append(marks[:5], [0, 0.25, 0.5])
        known = ~np.isnan(asked)
        found = reference.p_value(asked, some[: len(asked)])
        each = found[known], asked[known], some[: len(asked)][known]
        for p, score, mark in zip(*each, strict=True):
            bounds = naive.bounds(score, mark)
            if bounds is None:
                assert np.isnan(p)
            else:
                assert bounds[0] - 1e-12 <= p <= bounds[1] + 1e-12
        end += m
        rows, admitted = admit(reference, scores, end, marks)
        learned = np.concatenate([rows[admitted.usual], admitted.released])[:, 0]
        assert learned.tolist() == naive.admit(scores.tolist(), marks.tolist(), end)
        assert reference.scores.tolist() == naive.counted
        assert reference.marks.tolist() == naive.marks
        assert reference.held.numbers.tolist() == [number for number, _ in naive.held]


def test_there_is_no_p_value_before_the_first_records():
    assert np.isnan(Reference().p_value(np.zeros(2))).all()
    assert Reference().lowest_usual_density(0.01) == -np.inf


@pytest.mark.parametrize("rate", [0.001, 0.01])
def test_the_lowest_usual_density_leaves_the_alarm_rate_below_it(rate):
    reference, _ = filled(4000)
    lowest = reference.lowest_usual_density(rate)
    assert np.count_nonzero(reference.densities < lowest) == int(rate * 4000)


OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
VALUES = st.sampled_from(
    [0.0, -0.0, 1.0, np.nextafter(1.0, 2.0), -1.0, 1e-310, 1e308, np.nan, -np.nan, OTHER_NAN]
)
SLOTS = st.integers(0, 2)


def told(rows, slots):
    """Return what tells rows apart: values, with one zero and one missing, and the slot."""
    return [
        (slot, *(None if np.isnan(x) else float(x) + 0.0 for x in row))
        for row, slot in zip(rows, slots, strict=True)
    ]


@given(st.lists(st.tuples(VALUES, VALUES, VALUES, SLOTS), max_size=40))
@example([(1.0, -1.0, 0.0, 0), (-1.0, 1.0, 0.0, 0)])
def test_marks_are_equal_where_rows_and_slots_are_and_nowhere_else(drawn):
    table = np.array(drawn).reshape(-1, 4)
    rows, slots = table[:, :3], table[:, 3].astype(np.int64)
    found, expected = marks_of(rows, slots), told(rows, slots)
    assert ((found >= 0) & (found < 1)).all()
    for i, one in enumerate(expected):
        assert (found == found[i]).tolist() == [one == other for other in expected]


def test_a_hundred_thousand_rows_that_differ_have_marks_that_differ():
    rows = np.arange(100_000.0).reshape(-1, 1)
    assert len(set(marks_of(rows, np.zeros(len(rows), np.int64)).tolist())) == len(rows)
    assert len(set(marks_of(0 * rows, np.arange(len(rows))).tolist())) == len(rows)
