"""What is usual for each entity: how often each category came in records of its own.

Given its entity, a value has the probability (p + b n) / (1 + b N): p is what the tree says, and n
of the entity's N records had the value. That is the mean of a Dirichlet distribution around p with
concentration 1 / b, given these records. How much entities differ, b, is the one of a few under
which the latest records were likeliest; 0 where entities are alike.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.arrays import Arrays, IntArray, Mask
from faust_oslrau.learner.state_schema import Entry, read
from faust_oslrau.learner.stored import doubled
from faust_oslrau.learner.vector.compiler import Array, kernel

from .tree import Tables, records_of
from .values import MISSING

STRENGTHS = np.array([0.0, 0.03, 0.25, 2.0, 16.0])
"""What b may be: entities are alike, or one of its own records says as much as so many of all."""

VOTES = 16_384.0
"""Records whose likelihood chooses b."""

MOST_COUNTS = 1 << 19
"""Most counts: values times entities. Further entities are as all together."""

_COUNTS = {
    "own": Entry(("e", "s"), 0.0, dtype="<f4"),
    "votes": Entry(("c", len(STRENGTHS))),
}


class EntityCounts:
    """How often each entity had each category.

    Attributes
    ----------
    counts
        The records of each entity with each slot (e, s).
    strength
        How much entities differ in each field, b (c,).
    """

    def __init__(self, c: int) -> None:
        self.counts, self.strength = np.zeros((0, c), np.float32), np.zeros(c)
        self._votes = np.zeros((c, len(STRENGTHS)))
        self._begun: set[int] = set()

    def take(self, entities: IntArray, fresh: Mask) -> IntArray:
        """Return the rows of the counts of records' ``entities`` (m,), `MISSING` where unknown.

        Those that began anew since the last boundary, as ``fresh`` (m,) says, are not known yet.
        """
        known = entities.copy()
        known[np.isin(entities, list(self._begun))] = MISSING
        for row in np.flatnonzero(fresh).tolist():
            known[row:][entities[row:] == entities[row]] = MISSING
            self._begun.add(int(entities[row]))
        known[known >= len(self.counts)] = MISSING
        return known

    def choose(self, slots: IntArray, entities: IntArray, fresh: Mask, tables: Tables) -> None:
        """Choose how much entities differ, by records with slots (m, c) and what was known before.

        Make room for the ``entities`` (m,), those ``fresh`` (m,) anew.
        """
        self._votes *= math.exp(-len(slots) / VOTES)
        add_votes(slots, self.take(entities, fresh), tables, STRENGTHS, self._votes)
        self.strength = STRENGTHS[self._votes.argmax(axis=1)]
        self._reserve(int(entities.max(initial=-1)) + 1)

    def count(self, slots: IntArray, entities: IntArray, fresh: Mask) -> None:
        """Count the slots (m, c) of the records of a batch, which ends, in place."""
        add_counts(slots, entities, fresh, self.counts)
        self._begun.clear()

    def _reserve(self, needed: int) -> None:
        """Make room for so many entities, in steps that double it, as far as there is room."""
        room = min(doubled(len(self.counts), needed), MOST_COUNTS // max(self.counts.shape[1], 1))
        if room > len(self.counts):
            self.counts = np.pad(self.counts, ((0, room - len(self.counts)), (0, 0)))

    def make_room(self, s: int) -> None:
        """Make room for ``s`` slots; the last entities may have to be as all together."""
        more = s - self.counts.shape[1]
        if more > 0:
            self.counts = np.pad(self.counts[: MOST_COUNTS // s], ((0, 0), (0, more)))

    def merge(self, slots: IntArray, rests: IntArray) -> None:
        """Let the records of some slots be those of the ``rests`` of their fields."""
        np.add.at(self.counts.T, rests, self.counts[:, slots].T)
        self.counts[:, slots] = 0.0

    def forget(self, share: float) -> None:
        """Reduce all counts to a share of themselves."""
        self.counts *= np.float32(share)

    def state(self, prefix: str) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        return {prefix + "own": self.counts, prefix + "votes": self._votes}

    def restore(self, arrays: Arrays, prefix: str, c: int, s: int) -> None:
        """Restore a state of ``s`` slots in ``c`` fields; StateError if it cannot be one."""
        self.counts, self._votes = read(arrays, _COUNTS, prefix, c=c, s=s)
        self.strength = STRENGTHS[self._votes.argmax(axis=1)]

    def resume(self, entities: IntArray, fresh: Mask) -> None:
        """Take the records (m,) that wait for a boundary as those taken since the last one."""
        self._begun = set(entities[fresh].tolist())


@kernel
def add_votes(slots: Array, known: Array, tables: Tables, strengths: Array, votes: Array) -> None:
    """Add to ``votes`` (c, k) the log-likelihood of records under each of the ``strengths`` (k,).

    Of the categories with slots (m, c) of the entities ``known`` (m,), given their parents.
    """
    members, ends, parents, _, probability, own, _ = tables
    for i in range(slots.shape[0]):
        if known[i] < 0:
            continue
        for f in range(slots.shape[1]):
            given = slots[i, parents[f]] if parents[f] >= 0 else -1
            slot = slots[i, f]
            if slot < 0 or (parents[f] >= 0 and given < 0):
                continue
            p, n = probability[given, slot], own[known[i], slot]
            records = records_of(own, known[i], members[ends[f] : ends[f + 1]])
            for k in range(len(strengths)):
                b = strengths[k]
                votes[f, k] += math.log((p + b * n) / (1.0 + b * records))


@kernel
def add_counts(slots: Array, entities: Array, fresh: Array, counts: Array) -> None:
    """Count the slots (m, c) of records of ``entities`` (m,), those ``fresh`` (m,) anew."""
    for i in range(slots.shape[0]):
        entity = entities[i]
        if entity >= len(counts):
            continue
        if fresh[i]:
            counts[entity] = 0.0
        for f in range(slots.shape[1]):
            if slots[i, f] >= 0:
                counts[entity, slots[i, f]] += 1.0
