"""Kernels that follow the gaps between records, and stop where one is too long."""

from __future__ import annotations

import math
from typing import NamedTuple

from faust_oslrau.learner.scoring.clock import DAY
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import exp_bounded, log_positive

from .subjects import PARTITION

LARGEST = 8
"""Gaps in a list. More would tell the tail better where it is regular, and later where it is not.
"""

MEMORY = 4096
"""Gaps after which a new list begins."""

AGAIN = 4
"""Silences about as long that make this length usual: some outages of a bad day do not."""

MONTH = 30.0 * DAY
"""Milliseconds of a month. Pauses in each night or week are far too few for the lists."""

FEWEST = 64
"""Gaps from which on silences are judged, and longer ones than the lists say are in no list: a few
pauses among many short gaps would make the tail astronomic."""

FACTOR = 3.0
"""A silence must be longer than so many times the longest gap: one or two lost records of a regular
entity are no silence."""

RATE = 1e-6
"""Share of gaps that may be too long by chance."""

MARGIN = 1.5
"""Pauses that come again may differ by this factor. A larger one would find the silences of many
independent arrivals later."""


class Gaps(NamedTuple):
    """What is known of each of n slots. Times are in milliseconds of the partition's time.

    Attributes
    ----------
    times
        When its last record came (n,), -1 for never; of the partition, its time.
    counts, largest
        The gaps in the list that grows and in the one before (n, 2), and the largest ones of each
        (n, 2, 8) in descending order.
    since, pauses
        When its month began (n,), and the longest gaps since then and of the month before (n, 2, 4)
        in descending order.
    deadlines
        From when on it is silent for too long (n,), infinite if that is told already, or unknown;
        of the partition, a time before which no other one is.
    """

    times: Array
    counts: Array
    largest: Array
    since: Array
    pauses: Array
    deadlines: Array


@kernel
def follow(
    start: int, slots: Array, fresh: Array, places: Array, moments: Array,
    gaps: Gaps, last: Array, found: Array, before: Array,
) -> int:  # fmt: skip
    """Follow the rows from ``start`` on; return the first one with something to tell, m if none.

    ``slots`` (m,) are the rows' slots, 0 for no entity, ``fresh`` (m,) says which are new there,
    ``places`` (m, 3) are numbers, offsets and timestamps, ``moments`` (m + 1, 2) what the
    partition's clock says before and after each row. Changes the ``gaps``, and offset and timestamp
    of the ``last`` record of each slot (n, 2). Fills ``found`` (2, 2) with length and limit of the
    partition's silence and of that of the row's entity, if one ends here, else with zeros; and
    ``before`` (2, 2) with the records before these.
    """
    for row in range(start, len(slots)):
        found[:] = 0.0
        before[0, 0], before[0, 1] = moments[row, 0], moments[row, 1]
        moved = moments[row + 1, 1] - moments[row, 1] if moments[row, 1] >= 0 else 0
        if moved > 0:
            usual = learn_gap(float(moved), gaps.times[PARTITION], PARTITION, gaps, found[0])
            # While a partition is silent, its entities are not.
            gaps.times[PARTITION] += min(moved, usual / FACTOR)
        slot = slots[row]
        if slot != PARTITION:
            if fresh[row]:
                gaps.times[slot], gaps.since[slot], gaps.deadlines[slot] = -1.0, 0.0, math.inf
                gaps.counts[slot], gaps.largest[slot], gaps.pauses[slot] = 0, 0.0, 0.0
            before[1, 0], before[1, 1] = last[slot, 0], last[slot, 1]
            arrive(slot, gaps, found[1])
            last[slot, 0], last[slot, 1] = places[row, 1], places[row, 2]
        if found[0, 0] > 0.0 or found[1, 0] > 0.0 or is_due(gaps.times[PARTITION], gaps.deadlines):
            return row
    return len(slots)


@kernel
def arrive(slot: int, gaps: Gaps, found: Array) -> None:
    """Add a record of an entity; fill ``found`` (2,) with its silence if this was too long."""
    now, before = gaps.times[PARTITION], gaps.times[slot]
    if before >= 0.0 and now > before:
        learn_gap(now - before, now, slot, gaps, found)
    gaps.times[slot] = now
    gaps.deadlines[slot] = now + longest_usual(slot, gaps)
    gaps.deadlines[PARTITION] = min(gaps.deadlines[PARTITION], gaps.deadlines[slot])


@kernel
def is_due(now: float, deadlines: Array) -> bool:
    """Tell whether the deadline of an entity has passed."""
    if deadlines[PARTITION] >= now:
        return False
    deadlines[PARTITION] = math.inf
    deadlines[PARTITION] = deadlines.min()
    return bool(deadlines[PARTITION] < now)


@kernel
def learn_gap(gap: float, now: float, slot: int, gaps: Gaps, found: Array) -> float:
    """Add a positive gap that ends ``now``; fill ``found`` (2,) with gap and limit if too long.

    Returns the longest silence that was usual by the lists.
    """
    usual = longest_of_lists(slot, gaps)
    limit = max(usual, MARGIN * again(gaps.pauses[slot]))
    if gap > limit:
        found[0], found[1] = gap, limit
    is_over = now - gaps.since[slot] >= MONTH
    if is_over:
        gaps.since[slot] = now
    add(gap, gaps.pauses[slot], is_over)
    if gap <= usual:
        is_full = gaps.counts[slot, 0] >= MEMORY
        if is_full:
            gaps.counts[slot, 1], gaps.counts[slot, 0] = gaps.counts[slot, 0], 0
        gaps.counts[slot, 0] += 1
        add(gap, gaps.largest[slot], is_full)
    return usual


@kernel
def add(gap: float, lists: Array, begins: bool) -> None:
    """Add a gap to the first of two lists (2, k) of the longest ones, or to one that ``begins``."""
    k = lists.shape[1]
    if begins:
        for i in range(k):
            lists[1, i], lists[0, i] = lists[0, i], 0.0
    at = k
    while at > 0 and gap > lists[0, at - 1]:
        at -= 1
        if at < k - 1:
            lists[0, at + 1] = lists[0, at]
    if at < k:
        lists[0, at] = gap


@kernel
def longest_usual(slot: int, gaps: Gaps) -> float:
    """Return the longest silence of a slot that is not too long, infinite if few gaps are known."""
    return max(longest_of_lists(slot, gaps), MARGIN * again(gaps.pauses[slot]))


@kernel
def again(pauses: Array) -> float:
    """Return the fourth longest gap of two months (2, 4), 0 if there are fewer."""
    i, j, gap = 0, 0, 0.0
    for _ in range(AGAIN):
        gap = float(max(pauses[0, i], pauses[1, j]))
        if pauses[0, i] >= pauses[1, j]:
            i += 1
        else:
            j += 1
    return gap


@kernel
def longest_of_lists(slot: int, gaps: Gaps) -> float:
    """Return what the lists of a slot say of the longest silence that is not too long.

    Weissman's estimator of the quantile 1 - ``RATE`` of the gaps, with Hill's estimator of the tail
    from the largest ones (Weissman 1978, Hill 1975).
    """
    n, largest = gaps.counts[slot, 0] + gaps.counts[slot, 1], gaps.largest[slot]
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
    tail: float = exp_bounded(smallest + excess * beyond)  # below e**700: time stamps are 64 bits
    longest = float(max(largest[0, 0], largest[1, 0]))
    return max(tail, FACTOR * longest)
