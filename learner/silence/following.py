"""Kernels that follow the gaps between records, and stop where one is too long."""

from __future__ import annotations

import math

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import exp_bounded, log_positive

from .clock import latest, tick
from .subjects import PARTITION

LAST, NEW, OLD, SINCE, LONGEST, PATIENCE = range(6)
"""Numbers of a slot: when its last record came, -1 for never; the gaps of its two lists; when the
new list began; the longest gap since then, and how long its silences may be since one was too long.
Times are those of the partition's clock in milliseconds."""

N_NUMBERS = 6

LARGEST = 8
"""Gaps in a list. More would tell the tail better where it is regular, and later where it is not.
"""

MEMORY = 4096
"""Gaps after which a new list begins."""

LASTING = 64.0
"""A list lasts at least so many times the longest gap since it began, so that an entity with many
records a day remembers its pauses at night."""

LONGEST_LIST = 30 * 86_400_000.0
"""But not more than 30 days, unless it has few gaps."""

FEWEST = 32
"""Gaps from which on silences are judged."""

FACTOR = 3.0
"""A silence must be longer than so many times the longest gap: one or two lost records of a regular
entity are no silence."""

RATE = 1e-6
"""Share of gaps that may be too long by chance."""

LARGEST_LOG = 60.0
"""Logarithm of the longest limit, which no silence reaches."""

SURPRISE = 2.0
"""After a silence that was too long, the limit is so many times what it was, until a new list
begins. So one outage does not hide the next, but pauses that come again become usual."""

NOW, SLOTS, UNCHECKED, N_SILENT, GAP = range(5)
"""Numbers of the partition: its time in milliseconds, without long gaps; the slots in use; records
since deadlines were checked; the entities that are silent; the mean gap."""

N_PARTITION = 5

CHECKED = 256
"""Deadlines that are checked for each record on average: all of so many entities with each record,
those of more entities with each of some records."""

LONGEST_STEP = 4.0
"""Mean gaps by which the time goes on with one record at the most: while a partition is silent, its
entities are not."""

MEAN_OF = 256.0
"""Gaps over which the mean runs."""


@kernel
def add_gap(gap: float, limit: float, now: float, own: Array, largest: Array) -> None:
    """Add a positive gap that ends ``now`` to the numbers and the largest gaps of a slot.

    Changes ``own`` (6,) and ``largest`` (2, 8), in descending order, the new list first. A gap
    beyond the ``limit`` is no usual one.
    """
    if own[NEW] >= MEMORY and now - own[SINCE] >= min(LASTING * own[LONGEST], LONGEST_LIST):
        largest[1], largest[0] = largest[0], 0.0
        own[OLD], own[NEW], own[SINCE] = own[NEW], 0.0, now
        own[LONGEST], own[PATIENCE] = 0.0, 0.0
    own[LONGEST] = max(own[LONGEST], gap)
    if gap > limit:
        own[PATIENCE] = SURPRISE * limit
        return
    own[NEW] += 1.0
    at = LARGEST - 1
    if gap <= largest[0, at]:
        return
    while at > 0 and gap > largest[0, at - 1]:
        largest[0, at] = largest[0, at - 1]
        at -= 1
    largest[0, at] = gap


@kernel
def longest_usual(own: Array, largest: Array) -> float:
    """Return the longest silence of a slot that is not too long, infinite if few gaps are known.

    Weissman's estimator of the quantile 1 - ``RATE`` of the gaps, with Hill's estimator of the tail
    from the largest ones (Weissman 1978, Hill 1975).
    """
    n = own[NEW] + own[OLD]
    if n < FEWEST:
        return math.inf
    i, j, x, total = 0, 0, 0.0, 0.0
    for _ in range(LARGEST):
        if largest[0, i] >= largest[1, j]:
            x = float(largest[0, i])
            i += 1
        else:
            x = float(largest[1, j])
            j += 1
        total += log_positive(x)
    smallest = log_positive(x)
    excess = max(total - LARGEST * smallest, 0.0) / (LARGEST - 1)
    beyond = max(log_positive(LARGEST / (n * RATE)), 0.0)
    tail: float = exp_bounded(min(smallest + excess * beyond, LARGEST_LOG))
    longest = float(max(largest[0, 0], largest[1, 0]))
    return max(tail, FACTOR * longest, float(own[PATIENCE]))


@kernel
def follow(
    start: int, slots: Array, fresh: Array, places: Array, clock: Array, partition: Array,
    numbers: Array, largest: Array, deadlines: Array, last: Array, found: Array, before: Array,
) -> int:  # fmt: skip
    """Follow the rows from ``start`` on; return the first one with something to tell, m if none.

    ``slots`` (m,) are the rows' slots, 0 for no entity, ``fresh`` (m,) says which begin anew there,
    ``places`` (m, 3) are numbers, offsets and timestamps. Changes the ``clock``, the numbers of the
    ``partition`` (5,), and of each slot ``numbers`` (n, 6), ``largest`` gaps (n, 2, 8),
    ``deadlines`` (n,) and offset and timestamp of the ``last`` record (n, 2). Fills ``found``
    (2, 2) with length and limit of the partition's silence and of that of the row's entity, if one
    ends here, else with zeros; and ``before`` (2, 2) with the records before these.
    """
    for row in range(start, len(slots)):
        found[:], before[0] = 0.0, clock[latest(clock)]
        moved = tick(clock, places[row, 1], places[row, 2])
        advance(moved, partition, numbers[PARTITION], largest[PARTITION], found[0])
        slot, now = slots[row], partition[NOW]
        if slot != PARTITION:
            known = numbers[slot, NEW] + numbers[slot, OLD]
            if deadlines[slot] == math.inf and known >= FEWEST:  # told as silent already
                partition[N_SILENT] -= 1.0
            if fresh[row]:
                numbers[slot], largest[slot] = 0.0, 0.0
                numbers[slot, LAST] = -1.0
            before[1] = last[slot]
            deadlines[slot] = arrive(now, numbers[slot], largest[slot], found[1])
            last[slot] = places[row, 1:]
            partition[SLOTS] = max(partition[SLOTS], slot + 1)
        if found[0, 0] > 0.0 or found[1, 0] > 0.0 or is_due(partition, deadlines):
            return row
    return len(slots)


@kernel
def advance(moved: float, partition: Array, own: Array, largest: Array, found: Array) -> None:
    """Let the partition's time go on, as that of its records ``moved`` on in milliseconds."""
    if moved == 0.0:
        return
    learn_gap(moved, partition[NOW], own, largest, found)
    seen = min(own[NEW] + own[OLD], MEAN_OF)
    step = min(moved, LONGEST_STEP * partition[GAP]) if seen > 1.0 else moved
    partition[GAP] += (step - partition[GAP]) / max(seen, 1.0)
    partition[NOW] += step


@kernel
def arrive(now: float, own: Array, largest: Array, found: Array) -> float:
    """Add a record of an entity; return the time at which its next silence is too long."""
    if own[LAST] >= 0.0 and now > own[LAST]:
        learn_gap(now - own[LAST], now, own, largest, found)
    own[LAST] = now
    return now + longest_usual(own, largest)


@kernel
def learn_gap(gap: float, now: float, own: Array, largest: Array, found: Array) -> None:
    """Add a positive gap to a slot; fill ``found`` (2,) with gap and limit if it was too long."""
    limit = longest_usual(own, largest)
    if gap > limit:
        found[0], found[1] = gap, limit
    add_gap(gap, limit, now, own, largest)


@kernel
def is_due(partition: Array, deadlines: Array) -> bool:
    """Tell whether a deadline has passed, if it is time to check them."""
    slots = int(partition[SLOTS])
    partition[UNCHECKED] += 1.0
    if partition[UNCHECKED] * CHECKED < slots:
        return False
    partition[UNCHECKED] = 0.0
    earliest = math.inf
    for slot in range(slots):
        earliest = min(earliest, deadlines[slot])
    return earliest < float(partition[NOW])
