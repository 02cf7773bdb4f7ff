"""Columns that only grow are left out, and the stream begins anew without them."""

from __future__ import annotations

import numpy as np
import pytest

from faust_oslrau.learner import (
    OSLRAU,
    InvalidInputError,
    StreamScorer,
)
from faust_oslrau.learner.scoring.growing import DECIDED_AT

N = 2000


def stream(seed=0, late=0.0):
    """Rows of two usual fields, a counter and a time stamp, of which a share comes late."""
    rng = np.random.default_rng(seed)
    times = 1.7e9 + np.cumsum(rng.exponential(size=N))
    is_late = rng.random(N) < late
    times[is_late] -= 5.0
    return np.column_stack([rng.normal(size=(N, 2)), np.arange(N), times])


def test_columns_that_only_grow_are_left_out_and_all_others_scored_as_without_them():
    rows = stream()
    scorer = StreamScorer(OSLRAU(), may_leave_out=range(4))
    block = scorer.process(rows)
    assert scorer.left_out == [2, 3]
    assert scorer.n_records == N
    missing = rows[DECIDED_AT:].copy()
    missing[:, 2:] = np.nan
    anew = StreamScorer(OSLRAU()).process(missing)
    assert np.array_equal(block.log_likelihood[DECIDED_AT:], anew.log_likelihood, equal_nan=True)
    assert np.array_equal(block.p_value[DECIDED_AT:], anew.p_value, equal_nan=True)


def falling_now_and_then(rows):
    rows[:, 2] %= 50
    return rows


@pytest.mark.parametrize(
    ("rows", "may_leave_out", "left_out"),
    [
        (stream(1, late=0.004), range(4), [2, 3]),
        (stream(), [0, 1], []),
        (falling_now_and_then(stream()), range(4), [3]),
        (stream()[:, 2:], [0, 1], []),
    ],
    ids=["late now and then", "not allowed", "falling now and then", "all of them"],
)
def test_columns_are_left_out_that_may_be_and_only_grow_unless_all_do(
    rows, may_leave_out, left_out
):
    scorer = StreamScorer(OSLRAU(), may_leave_out=may_leave_out)
    scorer.process(rows)
    assert scorer.left_out == left_out


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(InvalidInputError, match=r"expected the columns \[4\] of may_leave_out"):
        StreamScorer(OSLRAU(), may_leave_out=[4]).process(stream())
