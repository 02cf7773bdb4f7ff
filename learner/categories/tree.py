"""A tree over the fields: the probability of each category given one other field.

The tree is that of Chow and Liu (1968): of all trees, the one with the highest likelihood. A
dependence counts if it pays for its parameters (the description length of Rissanen 1978), so fields
that are independent stay so. Probabilities leave room for what was not seen yet: as much as came
once so far (Good 1953), and once more.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.vector.compiler import Array, kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

NONE = -1
"""The parent of a field that depends on none."""

SEEN, TWICE = 0.5, 1.5
"""Least counts of what has been seen, and seen more than once: counts fade with a memory."""


def gains(joint: FloatArray, field: IntArray, c: int) -> FloatArray:
    """Return the nats (c, c) by which a dependence of two fields raises the likelihood of the log.

    Less what its parameters cost: half of log n each, as many as pairs of values are seen beyond
    those that independence explains. ``joint`` (s, s) counts the records with both values, of
    ``field`` (s,).
    """
    result = np.zeros((c, c))
    for f in range(c):
        for g in range(f):
            pairs = joint[np.ix_(field == f, field == g)]
            n = pairs.sum()
            rows, columns = pairs.sum(axis=1), pairs.sum(axis=0)
            seen = pairs >= SEEN
            if n < SEEN or not seen.any():
                continue
            expected = np.outer(rows, columns) / n
            likelihood = (pairs[seen] * np.log(pairs[seen] / expected[seen])).sum()
            values = np.count_nonzero(rows >= SEEN) + np.count_nonzero(columns >= SEEN)
            free = max(int(np.count_nonzero(seen)) - int(values) + 1, 1)
            result[f, g] = result[g, f] = likelihood - 0.5 * free * math.log(max(n, 2.0))
    return result


def parents(gain: FloatArray) -> IntArray:
    """Return the parent (c,) of each field in the tree with the highest gain, `NONE` for a root."""
    c = len(gain)
    parent, best, waiting = np.full(c, NONE), np.zeros(c), np.ones(c, np.bool_)
    for _ in range(c):  # the algorithm of Prim (1957)
        f = int(np.where(waiting, best, -1.0).argmax())
        waiting[f] = False
        better = waiting & (gain[f] > best)
        best[better], parent[better] = gain[f, better], f
    return parent


@kernel
def add_pairs(slots: Array, joint: Array) -> None:
    """Count in ``joint`` (s, s) the slots (m, c) of records, and each pair of them."""
    for i in range(slots.shape[0]):
        for f in range(slots.shape[1]):
            for g in range(slots.shape[1]):
                if slots[i, f] >= 0 and slots[i, g] >= 0:
                    joint[slots[i, f], slots[i, g]] += 1.0


@kernel
def fill_log_probability(
    slots: Array, parent: Array, marginal: Array, joint: Array, total: Array, room: Array,
    result: Array,
) -> None:  # fmt: skip
    """Fill ``result`` (m, c) with the log-probability of each category given its parent's.

    0 where it is missing; that of the category alone where its parent is. ``marginal`` (s,) is the
    probability of each slot, ``joint`` (s, s) counts the pairs, ``total`` and ``room`` (s, c) the
    records of each field that come with a slot, and what stands for those not seen yet.
    """
    m, c = slots.shape
    for i in range(m):
        for f in range(c):
            slot = slots[i, f]
            result[i, f] = 0.0
            if slot < 0:
                continue
            p = marginal[slot]
            if parent[f] >= 0 and slots[i, parent[f]] >= 0:
                given = slots[i, parent[f]]
                p = (joint[given, slot] + room[given, f] * p) / (total[given, f] + room[given, f])
            result[i, f] = math.log(p)
