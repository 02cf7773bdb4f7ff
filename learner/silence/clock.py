"""Kernel of a partition's clock: the time that its records tell, although some may be wrong.

The time is the latest of recent medians of five time stamps. So records may be out of order, single
time stamps may be wrong, and where all of them jump back, the clock follows after some records.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import IntArray
from faust_oslrau.learner.errors import StateError
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


def new_clock() -> IntArray:
    """Return a clock (8, 2) that has seen no time stamp."""
    clock = np.full((N_ROWS, 2), -1)
    clock[COUNTS] = 0
    return clock


def check_clock(clock: IntArray) -> None:
    """Raise StateError if the counts of a clock cannot be those of one."""
    if (clock[COUNTS] < 0).any() or clock[COUNTS, 1] > STRETCH:
        raise StateError("state: expected a partition's clock")


@kernel
def tick(clock: Array, offset: int, timestamp: int) -> int:
    """Add a record; return by how many milliseconds the time moved on.

    That is 0 if the time stamp is negative, which is none, and for the first ones.
    """
    if timestamp < 0:
        return 0
    before, seen = clock[latest(clock), TIME], clock[COUNTS, 0]
    clock[seen % MEDIAN_OF, OFFSET], clock[seen % MEDIAN_OF, TIME] = offset, timestamp
    clock[COUNTS, 0] += 1
    if seen + 1 < MEDIAN_OF:
        return 0
    if clock[COUNTS, 1] == STRETCH:
        clock[EARLIER], clock[LATER], clock[COUNTS, 1] = clock[LATER], -1, 0
    clock[COUNTS, 1] += 1
    row = median(clock)
    if clock[row, TIME] > clock[LATER, TIME]:
        clock[LATER] = clock[row]
    return 0 if before < 0 else max(clock[latest(clock), TIME] - before, 0)


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
