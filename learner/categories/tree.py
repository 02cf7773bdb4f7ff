"""A tree over the fields: the probability of each category given one other field.

The tree is that of Chow and Liu (1968): of all trees, the one with the highest likelihood. A
dependence counts if it pays for its parameters (the description length of Rissanen 1978), so fields
that are independent stay so. Probabilities leave room for what was not seen yet: as much as came
once so far (Good 1953), and once more.

The log-probability of a category does not tell how rare it is: of a thousand values that all come
as often, each has a low one. How rare it is tells the probability of all values that are no more
frequent. So one rare category among many fields counts, and many that are as usual as others do
not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.vector.compiler import Array, kernel

NONE = -1
"""The parent of a field that depends on none."""

ALIKE = 4.0
"""Values are as frequent as another one if they are at most so many times more frequent: counts of
few records say no more."""

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


def depths(parent: IntArray) -> IntArray:
    """Return how many fields are above each (c,); c or more where the parents are no tree."""
    depth, above = np.zeros(len(parent), np.int64), parent
    for _ in range(len(parent) + 1):
        depth += above != NONE
        above = np.where(above == NONE, NONE, parent[above])
    return depth


class Tables(NamedTuple):
    """What the probabilities of ``s`` slots in ``c`` fields are made of.

    Attributes
    ----------
    field
        The field (s,) of each slot.
    parent, order
        The parent (c,) of each field, and the fields (c,), each before its parent.
    marginal
        The probability (s,) of each slot.
    joint
        The records (s, s) with both slots of a pair.
    total, room
        The records of each field that come with a slot (s, c), and what stands for those not seen
        yet.
    """

    field: IntArray
    parent: IntArray
    order: IntArray
    marginal: FloatArray
    joint: FloatArray
    total: FloatArray
    room: FloatArray


@kernel
def log_given(tables: Tables, slot: int, f: int, given: int) -> float:
    """Return the log-probability of a slot of field ``f`` given that of its parent, if it has one.

    That of the slot alone without one.
    """
    p = tables.marginal[slot]
    if given >= 0:
        room = tables.room[given, f]
        p = (tables.joint[given, slot] + room * p) / (tables.total[given, f] + room)
    return math.log(p)


@kernel
def share_as_rare(tables: Tables, slot: int, f: int, given: int) -> float:
    """Return the probability of the values of field ``f`` that are no more frequent than a slot's.

    Given that of its parent as in ``log_given``, whose divisor is the same for all values.
    """
    row, counted, room, total = 0, 0.0, 1.0, 1.0
    if given >= 0:
        row, counted, room = given, 1.0, tables.room[given, f]
        total = tables.total[given, f] + room
    joint, marginal, share = tables.joint[row], tables.marginal, 0.0
    most = ALIKE * (counted * joint[slot] + room * marginal[slot])
    for other in range(len(marginal)):
        weight = counted * joint[other] + room * marginal[other]
        if tables.field[other] == f and weight <= most:
            share += weight
    return share / total


@kernel
def fill_log_rarity(slots: Array, tables: Tables, result: Array) -> None:
    """Fill ``result`` (m,) with how likely it is that a record has a category as rare as its own.

    That is the logarithm of that probability for the rarest of its observed categories (m, c), each
    given that of its parent.
    """
    for i in range(slots.shape[0]):
        rarest, observed = 1.0, 0
        for f in range(slots.shape[1]):
            if slots[i, f] < 0:
                continue
            parent = tables.parent[f]
            given = slots[i, parent] if parent >= 0 else -1
            rarest = min(rarest, share_as_rare(tables, slots[i, f], f, given))
            observed += 1
        result[i] = 0.0  # the rarest of so many, as if they were independent
        if rarest < 1.0:
            result[i] = math.log(-math.expm1(observed * math.log1p(-rarest)))


@kernel
def fill_log_probability(slots: Array, tables: Tables, result: Array) -> None:
    """Fill ``result`` (m, c) with logarithms that add up to those of the records' probabilities.

    Of each category given that of its parent; missing ones, slots below 0, are marginalised.
    """
    m, c = slots.shape
    messages = np.empty(len(tables.field))
    for i in range(m):
        if np.min(slots[i]) < 0:
            fill_marginalised(slots[i], tables, messages, result[i])
            continue
        for f in range(c):
            parent = tables.parent[f]
            given = slots[i, parent] if parent >= 0 else -1
            result[i, f] = log_given(tables, slots[i, f], f, given)


@kernel
def fill_marginalised(slots: Array, tables: Tables, messages: Array, result: Array) -> None:
    """Fill ``result`` (c,) for one record: sums over its missing categories, from leaves to roots.

    ``messages`` (s,) is scratch: what is observed below each value of a missing category.
    """
    messages[:] = 0.0
    result[:] = 0.0
    is_known = slots >= 0  # or something below it is
    for f in tables.order:
        if not is_known[f]:
            continue
        parent = tables.parent[f]
        if parent < 0 or slots[parent] >= 0:
            given = slots[parent] if parent >= 0 else -1
            result[f] = log_below(slots, tables, messages, f, given)
            continue
        is_known[parent] = True
        for given in range(len(messages)):
            if tables.field[given] == parent:
                messages[given] += log_below(slots, tables, messages, f, given)


@kernel
def log_below(slots: Array, tables: Tables, messages: Array, f: int, given: int) -> float:
    """Return the log-probability of what is observed of a field and below it, given its parent."""
    if slots[f] >= 0:
        return log_given(tables, slots[f], f, given)
    top, total = -np.inf, 0.0
    for slot in range(len(messages)):
        if tables.field[slot] == f:
            term = log_given(tables, slot, f, given) + messages[slot]
            if term > top:
                total = total * math.exp(top - term) + 1.0
                top = term
            else:
                total += math.exp(term - top)
    return top + math.log(total)
