"""Kernels that tell from the gaps between records which silence is too long.

Of its gaps, each slot remembers the largest ones, in two lists: those of the gaps that came last,
and those of as many before. Their tail is extrapolated as a power law, which is exact for gaps with
heavy tails and errs on the long side for others.
"""

from __future__ import annotations

import math

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import exp_bounded, log_positive

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
