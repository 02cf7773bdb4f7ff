"""What is usual for each entity: how often each category came in records of its own.

Given its entity, a value has the probability (p + b n) / (1 + b N): p is what the tree says, and n
of the entity's N records had the value. That is the mean of a Dirichlet distribution around p with
concentration 1 / b, given these records. How much its own records say, b, differs from entity to
entity: it is one of a few, each with its posterior probability given the entity's records, where
the prior ones are what entities are like. The mean over b is a p + c n, with an a and a c for each
entity and field.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.arrays import Arrays, IntArray, Mask
from faust_oslrau.learner.state_schema import LARGEST, Entry, read
from faust_oslrau.learner.stored import Places, doubled
from faust_oslrau.learner.vector.compiler import Array, kernel

from .tree import STRENGTHS, Tables, records_of
from .values import MISSING

SWEEPS = 8
"""Steps towards the likeliest prior each time, from the one before."""

LEAST_VOTE = -30.0
"""Nats by which a b is at most less likely than the likeliest, as an entity may change."""

MOST_COUNTS = 1 << 19
"""Most counts: values times entities. Further entities are as all together."""

K = len(STRENGTHS)

_COUNTS = {
    "own": Entry(("e", "s"), 0.0, dtype="<f4"),
    "votes": Entry(("e", "c", K), LEAST_VOTE, 0.0, dtype="<f4"),
    "prior": Entry(("c", K), -LARGEST, 0.0),
}


class EntityCounts:
    """How often each entity had each category.

    Attributes
    ----------
    counts
        The records of each entity with each slot (e, s).
    votes
        The log-likelihood of each b in the records of each entity, less the highest, for each field
        (e, c, K).
    prior
        The log-probability of each b for a new entity (c, K): the likeliest one, as entities are.
    """

    def __init__(self, c: int) -> None:
        self.counts = np.zeros((0, c), np.float32)
        self.votes = np.zeros((0, c, K), np.float32)
        self.prior = np.full((c, K), -math.log(K))
        self._begun: set[int] = set()

    def take(self, entities: IntArray, fresh: Mask) -> IntArray:
        """Return the rows of the counts of records' ``entities`` (m,), `MISSING` where unknown.

        Those that began anew since the last boundary, as ``fresh`` (m,) says, are not known yet.
        """
        known = self.held(entities)
        if self._begun:
            known[np.isin(entities, list(self._begun))] = MISSING
        for row in np.flatnonzero(fresh).tolist():
            known[row:][entities[row:] == entities[row]] = MISSING
            self._begun.add(int(entities[row]))
        return known

    def held(self, entities: IntArray) -> IntArray:
        """Return ``entities`` (m,), `MISSING` where there is no room to count their records."""
        return np.where(entities < len(self.counts), entities, MISSING)

    def end_batch(
        self, slots: IntArray, entities: IntArray, fresh: Mask, tables: Tables, *, learning: bool
    ) -> None:
        """Learn, in place, the slots (m, c) of the records of a batch, which ends."""
        count_records(slots, entities, fresh, tables, learning)
        self._begun.clear()

    def fit(self) -> None:
        """Learn, in place, what entities are like from all that are known."""
        fit_prior(self.votes, self.prior)

    def reserve(self, entities: IntArray) -> None:
        """Make room for entities (m,), in steps that double it, as far as there is room."""
        needed, most = int(entities.max(initial=-1)) + 1, MOST_COUNTS // self.counts.shape[1]
        self._resize(min(doubled(len(self.counts), needed), most), self.counts.shape[1])

    def make_room(self, s: int) -> None:
        """Make room for ``s`` slots; the last entities may have to be as all together."""
        self._resize(min(len(self.counts), MOST_COUNTS // s), s)

    def _resize(self, e: int, s: int) -> None:
        if (e, s) != self.counts.shape:
            more = max(e - len(self.counts), 0)
            self.counts = np.pad(self.counts[:e], ((0, more), (0, s - self.counts.shape[1])))
            self.votes = np.pad(self.votes[:e], ((0, more), (0, 0), (0, 0)))

    def add_fields(self, slots: Places, fields: Places) -> None:
        """Make room for more ``fields``, and for their ``slots``, as for entities without any."""
        self.counts = slots.widened(self.counts, 1, 0.0)
        self.votes = fields.widened(self.votes, 1, 0.0)
        self.prior = fields.widened(self.prior, 0, -math.log(K))
        self.make_room(slots.n)

    def merge(self, slots: IntArray, rests: IntArray) -> None:
        """Let the records of some slots be those of the ``rests`` of their fields."""
        if len(slots) > 0:
            np.add.at(self.counts.T, rests, self.counts[:, slots].T)
            self.counts[:, slots] = 0.0

    def forget(self, share: float) -> None:
        """Reduce all counts to a share of themselves."""
        self.counts *= np.float32(share)

    def state(self, prefix: str) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        return {
            prefix + "own": self.counts,
            prefix + "votes": self.votes,
            prefix + "prior": self.prior,
        }

    def restore(self, arrays: Arrays, prefix: str, c: int, s: int) -> None:
        """Restore a state of ``s`` slots in ``c`` fields; StateError if it cannot be one."""
        self.counts, self.votes, self.prior = read(arrays, _COUNTS, prefix, c=c, s=s)

    def resume(self, entities: IntArray, fresh: Mask) -> None:
        """Take the records (m,) that wait for a boundary as those taken since the last one."""
        self._begun = set(entities[fresh].tolist())


@kernel
def count_records(
    slots: Array, entities: Array, fresh: Array, tables: Tables, learning: bool
) -> None:
    """Learn the slots (m, c) of records of ``entities`` (m,), those ``fresh`` (m,) anew.

    Each record votes with those before it, and then counts.
    """
    parents, own, votes = tables.parent, tables.own, tables.votes
    for i in range(slots.shape[0]):
        entity = entities[i]
        if not 0 <= entity < len(own):
            continue
        if fresh[i]:
            own[entity], votes[entity] = 0.0, 0.0
        for f in range(slots.shape[1]):
            slot, given = slots[i, f], slots[i, parents[f]] if parents[f] >= 0 else -1
            if slot < 0 or not learning:
                continue
            if parents[f] < 0 or given >= 0:
                add_vote(entity, f, slot, given, tables)
            own[entity, slot] += 1.0


@kernel
def add_vote(entity: int, f: int, slot: int, given: int, tables: Tables) -> None:
    """Add what a record of an entity with this slot of field ``f`` says of each b."""
    of = tables.members[tables.ends[f] : tables.ends[f + 1]]
    votes, p, n = tables.votes[entity, f], tables.probability[given, slot], tables.own[entity, slot]
    records, top = records_of(tables.own, entity, of), -np.inf
    for k in range(len(votes)):
        votes[k] += math.log((p + STRENGTHS[k] * n) / (1.0 + STRENGTHS[k] * records))
        top = max(top, votes[k])
    for k in range(len(votes)):
        votes[k] = max(votes[k] - top, LEAST_VOTE)


@kernel
def fit_prior(votes: Array, prior: Array) -> None:
    """Let the ``prior`` (c, K) of a field be as the votes (e, c, K) of all entities, by EM.

    Those of entities with too few records to tell do not count; one more is like each b.
    """
    for f in range(len(prior)):
        for _ in range(SWEEPS):
            shares = np.ones(K)
            for e in range(len(votes)):
                if votes[e, f].min() < 0.0:
                    weights = np.exp(prior[f] + votes[e, f])
                    shares += weights / weights.sum()
            prior[f] = np.log(shares / shares.sum())
