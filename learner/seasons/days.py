"""The last days: the mean of each field in each quarter of an hour, its deviation in each hour."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.scoring.clock import DAY
from faust_oslrau.learner.state_schema import Entry, expect
from faust_oslrau.learner.stored import Stored
from faust_oslrau.learner.vector.compiler import Array, kernel

from .calendar import UNKNOWN

HOURS = 24
OF_HOUR = 4
QUARTERS = HOURS * OF_HOUR
"""Quarters of an hour, at whose beginning fields may jump."""

MOST_DAYS = 56
"""Dates that are kept: eight weeks, so that a season can change."""

FEWEST_HOURS = 6
"""Hours with records of a date that counts: fewer do not tell how they differ."""

FEWEST_RECORDS = 8.0
"""Records of an hour from which on their deviation is known well enough."""

LARGEST_VALUE = 1e15
"""Values are clipped here, so that sums of squares stay finite."""

COUNT, SUM, REST, SQUARES = range(4)
"""Sums of a quarter of an hour: number of values, values, values less what the season expects, its
squares."""


class Days(Stored):
    """Each hour of the last dates in numbers, and each quarter of it.

    The records of two dates are summed up at a time, as those around midnight may be out of order.
    A date is closed when a third one comes. So no order of dates is needed: a date far ahead is
    closed like any other. A record more than a day away from the one before it is not counted.

    Attributes
    ----------
    dates
        The closed dates (j,), oldest first.
    level
        Mean of each quarter's values (j, 96, d), NaN where records are missing.
    spread
        Logarithm of the deviation of each hour's values less what the season expected (j, 24, d),
        NaN where records are missing, or too few.
    """

    schema: ClassVar = {
        "dates": Entry(("j",), dtype="<i8"),
        "level": Entry(("j", QUARTERS, "d"), dtype="<f4", nan=True, field=np.nan),
        "spread": Entry(("j", HOURS, "d"), dtype="<f4", nan=True, field=np.nan),
        "_open": Entry((2,), dtype="<i8"),
        "_sums": Entry((2, QUARTERS, "d", 4), nan=True),
        "_last": Entry((1,), dtype="<i8"),
    }
    prefix = "season_"

    def __init__(self, d: int) -> None:
        self.dates = np.empty(0, np.int64)
        self.level = np.empty((0, QUARTERS, d), np.float32)
        self.spread = np.empty((0, HOURS, d), np.float32)
        self._open = np.full(2, UNKNOWN)
        self._sums = np.zeros((2, QUARTERS, d, 4))
        self._last = -1

    def add(
        self,
        values: FloatArray,
        rest: FloatArray,
        times: IntArray,
        date: IntArray,
        hour: FloatArray,
    ) -> bool:
        """Count records (m, d) in log order; return whether a date was closed.

        ``rest`` (m, d) are the values less what the season expects. ``times`` (m,) are time stamps
        in milliseconds, negative for none; ``date`` and ``hour`` (m,) follow from them.
        """
        before = np.concatenate([[self._last], times[:-1]])
        near = (date != UNKNOWN) & (before >= 0) & (np.abs(times - before) < DAY)
        self._last = int(times[-1])
        closed, start = False, 0
        quarters = (hour * OF_HOUR).astype(np.int64)
        changes = np.flatnonzero(np.diff(date)) + 1
        for stop in [*changes.tolist(), len(date)]:
            part = slice(start, stop)
            if near[part].any():
                at, closes = self._place(int(date[start]))
                closed |= closes
                count(values[part], rest[part], quarters[part], near[part], self._sums[at])
            start = stop
        return closed

    def _place(self, date: int) -> tuple[int, bool]:
        """Return where a date is summed up, and whether another one was closed for it."""
        if date in self._open:
            return int(np.argmax(self._open == date)), False
        if UNKNOWN in self._open:
            at, closes = int(np.argmax(self._open == UNKNOWN)), False
        else:
            at, closes = 1, self._close(0)
            self._open[0], self._sums[0] = self._open[1], self._sums[1]
        self._open[at], self._sums[at] = date, 0.0
        return at, closes

    def _close(self, at: int) -> bool:
        """Keep an open date if enough hours were seen; return whether it was kept."""
        sums = self._sums[at]
        hours = sums.reshape(HOURS, OF_HOUR, -1, 4).sum(axis=1)
        if np.count_nonzero(hours[..., COUNT].any(axis=1)) < FEWEST_HOURS:
            return False
        level = sums[..., SUM] / np.where(sums[..., COUNT] > 0.0, sums[..., COUNT], np.nan)
        spread = log_deviation(hours)
        self.dates = np.append(self.dates, self._open[at])[-MOST_DAYS:]
        self.level = np.concatenate([self.level, level[None].astype(np.float32)])[-MOST_DAYS:]
        self.spread = np.concatenate([self.spread, spread[None].astype(np.float32)])[-MOST_DAYS:]
        return True

    def forget_spread(self, fields: Mask) -> None:
        """Forget the deviations of some fields (d,): what is expected of them has changed."""
        self.spread[:, :, fields] = np.nan
        self._sums[:, :, fields, REST:] = np.nan

    def restore(self, arrays: Arrays) -> None:
        """Restore a state of as many fields; StateError if it cannot be one."""
        self.read_state(arrays, j=range(MOST_DAYS + 1), d=self._sums.shape[2])
        expect((self._sums[..., COUNT] >= 0.0).all(), "counts of records")
        expect(not np.isnan(self._sums[..., SUM]).any(), "sums of values")


def log_deviation(sums: FloatArray) -> FloatArray:
    """Return the logarithms (24, d) of deviations by ``sums`` (24, d, 4), NaN of few records."""
    n = sums[..., COUNT]
    square = sums[..., SQUARES] - sums[..., REST] ** 2 / np.maximum(n, 1.0)
    known = (n >= FEWEST_RECORDS) & (square > 0.0)
    spread = 0.5 * np.log(np.where(known, square, 1.0) / np.maximum(n - 1.0, 1.0))
    return np.where(known, spread, np.nan)


@kernel
def count(values: Array, rest: Array, quarters: Array, which: Array, sums: Array) -> None:
    """Add rows (m, d), those with ``which`` (m,), to the ``sums`` (96, d, 4) of their time."""
    for r in range(values.shape[0]):
        if which[r]:
            for v in range(values.shape[1]):
                if values[r, v] == values[r, v]:
                    own = sums[quarters[r], v]
                    left = min(max(rest[r, v], -LARGEST_VALUE), LARGEST_VALUE)
                    own[COUNT] += 1.0
                    own[SUM] += min(max(values[r, v], -LARGEST_VALUE), LARGEST_VALUE)
                    own[REST] += left
                    own[SQUARES] += left * left


DAYS_OF_WEEK = 7
WEEK = DAYS_OF_WEEK * QUARTERS
"""Quarters of an hour of a week."""


class Usual(NamedTuple):
    """What is usual in each quarter of an hour of a week, (672, d) each.

    The level, and how many times as large as on average deviations are, with its logarithm.
    """

    level: FloatArray
    ratio: FloatArray
    log_ratio: FloatArray

    @classmethod
    def of(cls, level: FloatArray, ratio: FloatArray) -> Self:
        """Return it by level and ratio."""
        return cls(level, ratio, np.log(ratio))

    @classmethod
    def constant(cls, d: int) -> Self:
        """Return a week in which no hour differs from another."""
        return cls.of(np.zeros((WEEK, d)), np.ones((WEEK, d)))


def between_hours(hours: FloatArray) -> FloatArray:
    """Return the middles of quarters (672, d) on lines between those of ``hours`` (168, d)."""
    at = (np.arange(WEEK) + 0.5) / OF_HOUR - 0.5
    lower = np.floor(at).astype(np.int64)
    share = (at - lower)[:, None]
    n = DAYS_OF_WEEK * HOURS
    return np.asarray((1.0 - share) * hours[lower % n] + share * hours[(lower + 1) % n])
