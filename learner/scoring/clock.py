"""A partition's clock: the time that its records tell, although some may be wrong.

The time is the latest of recent medians of five time stamps. So records may be out of order, single
time stamps may be wrong, and where all of them jump back, the clock follows after some records.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, IntArray
from faust_oslrau.learner.state_schema import Entry, expect
from faust_oslrau.learner.stored import Stored
from faust_oslrau.learner.vector.compiler import Array, kernel

OFFSET, TIME = range(2)
"""Columns of a clock, of one record in each row."""

MEDIAN_OF = 5
"""Time stamps whose median counts. The clock is two records behind."""

EARLIER, LATER, COUNTS = MEDIAN_OF, MEDIAN_OF + 1, MEDIAN_OF + 2
"""Rows of a clock after those of the last records: the latest median of one stretch of medians and
of the next, which goes on; then the number of records so far, and of medians in that stretch."""

N_ROWS = MEDIAN_OF + 3

STRETCH = 32
"""Medians in a stretch: the clock follows time stamps that jump back after one or two stretches."""

DAY = 86_400_000
"""Milliseconds of a day. A time stamp may be so far ahead of the clock: time zones may be mistaken.
"""


class Clock(Stored):
    """The time of a partition, which each record may move on."""

    schema: ClassVar = {"_clock": Entry((N_ROWS, 2), -1, dtype="<i8")}

    def __init__(self) -> None:
        self._clock = np.full((N_ROWS, 2), -1)
        self._clock[COUNTS] = 0

    @property
    def now(self) -> int:
        """The time in milliseconds, -1 before there is any."""
        return int(self._clock[latest(self._clock), TIME])

    def take(self, places: IntArray) -> IntArray:
        """Return offset and time stamp (m + 1, 2) of the records by which it is so late.

        Before the next rows, and after each of them. ``places`` (m, 3) are their numbers, offsets
        and time stamps, negative for none.
        """
        result = np.empty((len(places) + 1, 2), np.int64)
        follow_time(places, self._clock, result)
        return result

    def restore(self, arrays: Arrays) -> None:
        """Restore a state; StateError if it cannot be one."""
        self.read_state(arrays)
        counts = self._clock[COUNTS]
        expect((counts >= 0).all() and counts[1] <= STRETCH, "a partition's clock")


def plausible(times: IntArray, now: IntArray) -> IntArray:
    """Return time stamps (m,); those more than a day ahead of the clock's ``now`` (m,) count as it.

    One of them would otherwise be the latest for ever.
    """
    return np.where(times > now + DAY, now, times)


@kernel
def follow_time(places: Array, clock: Array, result: Array) -> None:
    """Fill ``result`` (m + 1, 2) with what the ``clock`` (8, 2) says before and after each row."""
    for row in range(len(places) + 1):
        if row > 0 and places[row - 1, 2] >= 0:
            tick(clock, places[row - 1, 1], places[row - 1, 2])
        now = latest(clock)
        result[row, OFFSET], result[row, TIME] = clock[now, OFFSET], clock[now, TIME]


@kernel
def tick(clock: Array, offset: int, timestamp: int) -> None:
    """Add a record with a time stamp."""
    seen = clock[COUNTS, 0]
    clock[seen % MEDIAN_OF, OFFSET], clock[seen % MEDIAN_OF, TIME] = offset, timestamp
    clock[COUNTS, 0] += 1
    if seen + 1 < MEDIAN_OF:
        return
    if clock[COUNTS, 1] == STRETCH:
        clock[EARLIER, OFFSET], clock[EARLIER, TIME] = clock[LATER, OFFSET], clock[LATER, TIME]
        clock[LATER], clock[COUNTS, 1] = -1, 0
    clock[COUNTS, 1] += 1
    row = median(clock)
    if clock[row, TIME] > clock[LATER, TIME]:
        clock[LATER, OFFSET], clock[LATER, TIME] = clock[row, OFFSET], clock[row, TIME]


@kernel
def latest(clock: Array) -> int:
    """Return the row of a clock whose record has the latest time, -1 before there is any."""
    return EARLIER if clock[EARLIER, TIME] > clock[LATER, TIME] else LATER


@kernel
def median(clock: Array) -> int:
    """Return the row with the median of the last time stamps, the first of equal ones."""
    for row in range(MEDIAN_OF):
        below, equal = 0, 0
        for other in range(MEDIAN_OF):
            below += clock[other, TIME] < clock[row, TIME]
            equal += clock[other, TIME] == clock[row, TIME]
        if below <= MEDIAN_OF // 2 < below + equal:
            return row
    return 0
