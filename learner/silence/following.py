"""Kernels that follow the gaps between records, and stop where one is too long."""

from __future__ import annotations

import math

from faust_oslrau.learner.scoring.clock import DAY
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import exp_bounded, log_positive

from .subjects import PARTITION

AGAIN = 4
"""Silences about as long that make this length usual: some outages of a bad day do not."""

LAST, NEW, OLD, SINCE, MONTH = range(5)
"""Numbers of a slot: when its last record came, -1 for never; the gaps of its two lists; when its
month began; from ``MONTH`` on, the longest gaps since then, in descending order.
Times are those of the partition's clock in milliseconds."""

BEFORE = MONTH + AGAIN
"""From here on, the longest gaps of the month before."""

N_NUMBERS = BEFORE + AGAIN

LARGEST = 8
"""Gaps in a list. More would tell the tail better where it is regular, and later where it is not.
"""

MEMORY = 4096
"""Gaps after which a new list begins."""

LASTING = 30.0 * DAY
"""Milliseconds of a month. Pauses in each night or week are far too few for the lists."""

FEWEST = 32
"""Gaps from which on silences are judged."""

ENOUGH = 1024
"""Gaps from which on longer ones than the lists say are pauses, and in no list."""

FACTOR = 3.0
"""A silence must be longer than so many times the longest gap: one or two lost records of a regular
entity are no silence."""

RATE = 1e-6
"""Share of gaps that may be too long by chance."""

LARGEST_LOG = 60.0
"""Logarithm of the longest limit, which no silence reaches."""

MARGIN = 1.5
"""Pauses that come again may differ by this factor. A larger one would find the silences of many
independent arrivals later."""

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
def add_gap(gap: float, most: float, now: float, own: Array, largest: Array) -> None:
    """Add a positive gap that ends ``now`` to the numbers and the largest gaps of a slot.

    Changes ``own`` (12,) and ``largest`` (2, 8), in descending order, the new list first. A gap
    beyond ``most`` is one of the month's alone.
    """
    if now - own[SINCE] >= LASTING:
        for i in range(BEFORE - MONTH):
            own[BEFORE + i], own[MONTH + i] = own[MONTH + i], 0.0
        own[SINCE] = now
    insert(gap, own[MONTH:BEFORE])
    if gap > most:
        return
    if own[NEW] >= MEMORY:
        for i in range(largest.shape[1]):
            largest[1, i], largest[0, i] = largest[0, i], 0.0
        own[OLD], own[NEW] = own[NEW], 0.0
    own[NEW] += 1.0
    insert(gap, largest[0])


@kernel
def insert(gap: float, longest: Array) -> None:
    """Insert a gap into some in descending order, if it is longer than the last of these."""
    at = len(longest) - 1
    if gap <= longest[at]:
        return
    while at > 0 and gap > longest[at - 1]:
        longest[at] = longest[at - 1]
        at -= 1
    longest[at] = gap


@kernel
def again(own: Array) -> float:
    """Return the fourth longest gap of a slot's month and the one before, 0 if there are fewer."""
    i, j, gap = MONTH, BEFORE, 0.0
    for _ in range(AGAIN):
        gap = max(own[i], own[j])
        if own[i] >= own[j]:
            i += 1
        else:
            j += 1
    return gap


@kernel
def longest_usual(own: Array, largest: Array) -> float:
    """Return the longest silence of a slot that is not too long, infinite if few gaps are known."""
    return max(longest_of_lists(own, largest), MARGIN * again(own))


@kernel
def longest_of_lists(own: Array, largest: Array) -> float:
    """Return what the lists of a slot say of the longest silence that is not too long.

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
    return max(tail, FACTOR * longest)


@kernel
def follow(
    start: int, slots: Array, fresh: Array, places: Array, moments: Array, partition: Array,
    numbers: Array, largest: Array, deadlines: Array, last: Array, found: Array, before: Array,
) -> int:  # fmt: skip
    """Follow the rows from ``start`` on; return the first one with something to tell, m if none.

    ``slots`` (m,) are the rows' slots, 0 for no entity, ``fresh`` (m,) says which begin anew there,
    ``places`` (m, 3) are numbers, offsets and timestamps, ``moments`` (m + 1, 2) what the
    partition's clock says before and after each row. Changes the numbers of the ``partition`` (5,),
    and of each slot ``numbers`` (n, 12), ``largest`` gaps (n, 2, 8), ``deadlines`` (n,) and offset
    and timestamp of the ``last`` record (n, 2). Fills ``found`` (2, 2) with length and limit of the
    partition's silence and of that of the row's entity, if one ends here, else with zeros; and
    ``before`` (2, 2) with the records before these.
    """
    for row in range(start, len(slots)):
        found[:] = 0.0
        before[0, 0], before[0, 1] = moments[row, 0], moments[row, 1]
        moved = moments[row + 1, 1] - moments[row, 1] if moments[row, 1] >= 0 else 0
        advance(moved, partition, numbers[PARTITION], largest[PARTITION], found[0])
        slot, now = slots[row], partition[NOW]
        if slot != PARTITION:
            known = numbers[slot, NEW] + numbers[slot, OLD]
            if deadlines[slot] == math.inf and known >= FEWEST:  # told as silent already
                partition[N_SILENT] -= 1.0
            if fresh[row]:
                numbers[slot], largest[slot] = 0.0, 0.0
                numbers[slot, LAST] = -1.0
            before[1, 0], before[1, 1] = last[slot, 0], last[slot, 1]
            deadlines[slot] = arrive(now, numbers[slot], largest[slot], found[1])
            last[slot, 0], last[slot, 1] = places[row, 1], places[row, 2]
            partition[SLOTS] = max(partition[SLOTS], slot + 1)
        if found[0, 0] > 0.0 or found[1, 0] > 0.0 or is_due(partition, deadlines):
            return row
    return len(slots)


@kernel
def advance(moved: float, partition: Array, own: Array, largest: Array, found: Array) -> None:
    """Let the partition's time go on, as that of its records ``moved`` on in milliseconds."""
    if moved <= 0.0:
        return
    learn_gap(float(moved), partition[NOW], own, largest, found)
    seen = min(own[NEW] + own[OLD], MEAN_OF)
    step = min(moved, LONGEST_STEP * partition[GAP]) if seen > 1.0 else moved
    partition[GAP] += (step - partition[GAP]) / max(seen, 1.0)
    partition[NOW] += step


@kernel
def arrive(now: float, own: Array, largest: Array, found: Array) -> float:
    """Add a record of an entity; return the time at which its next silence is too long."""
    if own[LAST] >= 0.0 and now > own[LAST]:
        learn_gap(now - own[LAST], float(now), own, largest, found)
    own[LAST] = now
    return now + longest_usual(own, largest)


@kernel
def learn_gap(gap: float, now: float, own: Array, largest: Array, found: Array) -> None:
    """Add a positive gap to a slot; fill ``found`` (2,) with gap and limit if it was too long."""
    limit = longest_usual(own, largest)
    if gap > limit:
        found[0], found[1] = gap, limit
    # A few pauses among many short gaps would make Weissman's quantile astronomic.
    is_known = own[NEW] + own[OLD] >= ENOUGH
    most = longest_of_lists(own, largest) if is_known else limit
    add_gap(gap, most, now, own, largest)


@kernel
def is_due(partition: Array, deadlines: Array) -> bool:
    """Tell whether a deadline has passed, if it is time to check them."""
    slots = int(partition[SLOTS])
    partition[UNCHECKED] += 1.0
    if partition[UNCHECKED] * CHECKED < slots:
        return False
    partition[UNCHECKED] = 0.0
    return bool(deadlines[:slots].min() < partition[NOW])
