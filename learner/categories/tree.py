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
from numpy.typing import NDArray

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.vector.compiler import Array, kernel

NONE = -1
"""The parent of a field that depends on none."""

ALIKE = 4.0
"""Values are as frequent as another one if they are at most so many times more frequent: counts of
few records say no more."""

STRENGTHS = np.array([0.0, 0.03, 0.25, 2.0, 16.0])
"""What a record of an entity may count beside the tree, b of `by_entity`."""

LEAST_PRODUCT = 1e-150
"""Product of probabilities below which its logarithm is taken, lest it vanish."""

SEEN, TWICE = 0.5, 1.5
"""Least counts of what has been seen, and seen more than once: counts fade with a memory."""


@kernel
def gains(joint: Array, members: Array, ends: Array) -> Array:
    """Return the nats (c, c) by which a dependence of two fields raises the likelihood of the log.

    Less what its parameters cost: half of log n each, as many as pairs of values are seen beyond
    those that independence explains. ``joint`` (s, s) counts the records with both values; those of
    fields are the ``members`` (s,) between their ``ends`` (c + 1,).
    """
    c = len(ends) - 1
    result = np.zeros((c, c))
    for f in range(c):
        for g in range(f):
            of, others = members[ends[f] : ends[f + 1]], members[ends[g] : ends[g + 1]]
            rows, columns = np.zeros(len(of)), np.zeros(len(others))
            for a in range(len(of)):
                for b in range(len(others)):
                    rows[a] += joint[of[a], others[b]]
                    columns[b] += joint[of[a], others[b]]
            n, seen, likelihood = rows.sum(), 0, 0.0
            for a in range(len(of)):
                for b in range(len(others)):
                    pairs = joint[of[a], others[b]]
                    if pairs >= SEEN:
                        seen += 1
                        likelihood += pairs * math.log(pairs / (rows[a] * columns[b] / n))
            values = (rows >= SEEN).sum() + (columns >= SEEN).sum()
            if seen > 0:
                free = max(seen - int(values) + 1, 1)
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
def depths(parent: Array) -> Array:
    """Return how many fields are above each (c,); c or more where the parents are no tree."""
    depth = np.zeros(len(parent), np.int64)
    for f in range(len(parent)):
        above = parent[f]
        while above != NONE and depth[f] < len(parent):
            depth[f] += 1
            above = parent[above]
    return depth


class Tables(NamedTuple):
    """What the probabilities of ``s`` slots in ``c`` fields are made of.

    Attributes
    ----------
    members, ends
        The slots (s,) in the order of fields, and where these begin and end there (c + 1,).
    parent, order
        The parent (c,) of each field, and the fields (c,), each before its parent.
    probability
        The probability of each slot given one of the field's parent (s + 1, s). In the last row
        nothing is given.
    own
        The records of each entity with each slot (e, s).
    votes, prior
        The log-likelihood of each of the `STRENGTHS` in the records of each entity (e, c, K), and
        their log-probability for any (c, K).
    """

    members: IntArray
    ends: IntArray
    parent: IntArray
    order: IntArray
    probability: FloatArray
    own: NDArray[np.float32]
    votes: NDArray[np.float32]
    prior: FloatArray


def log_shares(terms: FloatArray) -> FloatArray:
    """Return the logarithms (k, v) of shares in the sum of each row, given those of its terms.

    As scipy's `log_softmax`, which takes three times as long for a few records.
    """
    relative = terms - terms.max(axis=1, keepdims=True)
    return np.asarray(relative - np.log(np.exp(relative).sum(axis=1, keepdims=True)))


@kernel
def fill_probabilities(joint: Array, told: Array, tables: Tables) -> None:
    """Fill in the probabilities given a slot. Those where nothing is given are known.

    ``joint`` (s, s) counts the records with both slots of a pair. Those of slots that are not told
    apart are the records of the slots as which they are ``told`` (s + 1,).
    """
    members, ends, parents, p = tables.members, tables.ends, tables.parent, tables.probability
    for f in range(len(parents)):
        if parents[f] < 0:
            continue
        of, above = members[ends[f] : ends[f + 1]], members[ends[parents[f]] : ends[parents[f] + 1]]
        for given in above:
            for slot in of:
                p[told[given], told[slot]] += joint[given, slot]
        for given in above:
            seen, room = 0.0, 1.0
            for slot in of:
                seen += p[given, slot]
                room += SEEN <= joint[given, slot] < TWICE
            for slot in of:
                p[given, slot] = (p[given, slot] + room * p[-1, slot]) / (seen + room)


@kernel
def records_of(own: Array, entity: int, of: Array) -> float:
    """Return how many records of an entity have slots ``of`` a field."""
    records = 0.0
    for slot in of:
        records += own[entity, slot]
    return records


@kernel
def urn(
    own: Array, votes: Array, prior: Array, entity: int, f: int, members: Array, ends: Array
) -> tuple[float, float]:
    """Return what the tree's probability counts, and each of an entity's records, in a field.

    That is the mean of 1 / (1 + b N) and b / (1 + b N) over b (`by_entity`), of field ``f``. Of an
    entity that is not known it would be 1 and 0, but a call takes three times as long as the rest.
    """
    records, top = records_of(own, entity, members[ends[f] : ends[f + 1]]), -np.inf
    for k in range(len(STRENGTHS)):
        top = max(top, prior[f, k] + votes[entity, f, k])
    total, tree, each = 0.0, 0.0, 0.0
    for k in range(len(STRENGTHS)):
        weight = math.exp(prior[f, k] + votes[entity, f, k] - top)
        total += weight
        tree += weight / (1.0 + STRENGTHS[k] * records)
        each += weight * STRENGTHS[k] / (1.0 + STRENGTHS[k] * records)
    return tree / total, each / total


@kernel
def share(
    probability: Array, given: int, own: Array, entity: int, slot: int, tree: float, each: float
) -> float:
    """Return the probability of a slot given that of its parent, and the entity, by its `urn`."""
    p: float = tree * probability[given, slot]
    return p + each * own[entity, slot] if each > 0.0 else p


@kernel
def average_log_probability(tables: Tables) -> float:
    """Return the log-probability that the categories of a record have on average, by the tree."""
    members, ends, parents, p = tables.members, tables.ends, tables.parent, tables.probability
    total = 0.0
    for f in range(len(parents)):
        of, first, last = members[ends[f] : ends[f + 1]], 0, 1
        if parents[f] >= 0:
            first, last = ends[parents[f]], ends[parents[f] + 1]
        for at in range(first, last):
            given, weight = -1, 1.0
            if parents[f] >= 0:
                given, weight = members[at], p[-1, members[at]]
            for slot in of:
                total += weight * log_term(p[given, slot])
    return total


@kernel
def log_term(p: float) -> float:
    """Return what a value with the probability p adds to an average log-probability."""
    return p * math.log(p) if 0.0 < p < 1.0 else 0.0  # rounding may bring it above 1


@kernel
def fill_usual(slots: Array, tables: Tables, average: float, result: Array) -> None:
    """Fill ``result`` (m, 2) with the log-probability that such records have, and how rare each is.

    The first is the ``average`` one of a record, less that of the categories it lacks, each given
    that of its parent and the entity: so a missing one counts as a usual one. The second is the
    logarithm of how likely it is that a record has a category as rare as the rarest of its own.
    Slots (m, c + 1) are of the categories and the entity.
    """
    members, ends, parents, _, probability, own, votes, prior = tables
    for i in range(slots.shape[0]):
        rarest, observed, usual, entity = 1.0, 0, average, slots[i, len(parents)]
        for f in range(len(parents)):
            given = slots[i, parents[f]] if parents[f] >= 0 else -1
            tree, each, slot = 1.0, 0.0, slots[i, f]
            if entity >= 0:
                tree, each = urn(own, votes, prior, entity, f, members, ends)
            if slot < 0:
                for at in range(ends[f], ends[f + 1]):
                    usual -= log_term(
                        share(probability, given, own, entity, members[at], tree, each)
                    )
                continue
            most = ALIKE * share(probability, given, own, entity, slot, tree, each)
            as_rare = 0.0  # the probability of all that are no more frequent
            for at in range(ends[f], ends[f + 1]):
                p = share(probability, given, own, entity, members[at], tree, each)
                as_rare += p if p <= most else 0.0
            rarest, observed = min(rarest, as_rare), observed + 1
        result[i, 0], result[i, 1] = usual, 0.0
        if rarest < 1.0:  # the rarest of so many, as if they were independent
            result[i, 1] = math.log(-math.expm1(observed * math.log1p(-rarest)))


@kernel
def fill_log_probability(slots: Array, tables: Tables, result: Array) -> None:
    """Fill ``result`` (m,) with the log-probabilities of records.

    That is of each category given that of its parent and the entity; missing ones, slots below 0,
    are marginalised. Slots (m, c + 1) are of the categories and the entity.
    """
    members, ends, parents, _, probability, own, votes, prior = tables
    messages, c = np.empty(probability.shape[1]), len(parents)
    for i in range(slots.shape[0]):
        if np.min(slots[i, :c]) < 0:
            result[i] = log_marginal(slots[i], tables, messages)
            continue
        entity, total, product = slots[i, c], 0.0, 1.0
        for f in range(c):
            given = slots[i, parents[f]] if parents[f] >= 0 else -1
            tree, each = 1.0, 0.0
            if entity >= 0:
                tree, each = urn(own, votes, prior, entity, f, members, ends)
            product *= share(probability, given, own, entity, slots[i, f], tree, each)
            if product < LEAST_PRODUCT:
                total, product = total + math.log(product), 1.0
        result[i] = total + math.log(product)


@kernel
def log_marginal(slots: Array, tables: Tables, messages: Array) -> float:
    """Return the log-probability of one record: sums over missing categories, leaves to roots.

    ``messages`` (s,) is scratch: what is observed below each value of a missing category.
    """
    members, ends, parents, order, probability, own, votes, prior = tables
    messages[:] = 0.0
    entity, total = slots[len(parents)], 0.0
    is_known = slots >= 0  # or something below it is
    for f in order:
        if not is_known[f]:
            continue
        parent, every = parents[f], members[ends[f] : ends[f + 1]]
        tree, each = 1.0, 0.0
        if entity >= 0:
            tree, each = urn(own, votes, prior, entity, f, members, ends)
        of = slots[f : f + 1] if slots[f] >= 0 else every
        if parent < 0 or slots[parent] >= 0:
            given = slots[parent] if parent >= 0 else -1
            total += log_below(probability, given, own, entity, of, tree, each, messages)
            continue
        is_known[parent] = True
        for given in members[ends[parent] : ends[parent + 1]]:
            below = log_below(probability, given, own, entity, of, tree, each, messages)
            messages[given] += below
    return total


@kernel
def log_below(
    probability: Array,
    given: int,
    own: Array,
    entity: int,
    of: Array,
    tree: float,
    each: float,
    messages: Array,
) -> float:
    """Return the log-probability of some slots ``of`` a field, and of what is observed below them.

    ``messages`` (s,) have what is observed below each; the others are as for `share`.
    """
    top, terms = -np.inf, 0.0
    for slot in of:
        p = share(probability, given, own, entity, slot, tree, each)
        term = math.log(p) + messages[slot]
        if term > top:
            terms = terms * math.exp(top - term) + 1.0
            top = term
        else:
            terms += math.exp(term - top)
    return top + math.log(terms)
