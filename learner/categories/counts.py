"""How often categories came, in pairs and by entity: what their probabilities are made of."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.state_schema import Entry, counts, expect, read
from faust_oslrau.learner.stored import Places

from .by_entity import EntityCounts
from .tree import (
    NONE,
    SEEN,
    TWICE,
    Tables,
    add_pairs,
    average_log_probability,
    depths,
    fill_log_probability,
    fill_probabilities,
    fill_usual,
    gains,
    parents,
)
from .values import MISSING, MOST_SLOTS, Values, most_values

REFIT = 4096
"""Most records between two choices of parents; less while the stream is young."""

_TREE = {
    "joint": Entry(("s", "s"), 0.0),
    "parent": Entry(("c",), NONE, MOST_SLOTS, "<i8"),
    "fitted": counts(2),
}


class CategoryCounts:
    """The records with each value of ``c`` fields, and with each pair of them.

    Attributes
    ----------
    values
        The values that are told apart.
    parent
        The field (c,) that tells most of each, `NONE` for none.
    own
        The records of each entity with each value.
    n, fitted
        Records that were learned, and those with which parents were chosen.
    """

    def __init__(self, c: int) -> None:
        self.values = Values(c)
        self.parent = np.full(c, NONE)
        self.own = EntityCounts(c)
        self.n = self.fitted = 0
        self._joint = np.zeros((c, c))
        self._told = np.full(1, MISSING)
        self._derive()

    def slots(self, codes: FloatArray) -> IntArray:
        """Return the slots of values (m, c), as far as they are told apart."""
        return np.asarray(self._told[self.values.slots(codes)])

    def slots_of(self, f: int) -> IntArray:
        """Return the slots of a field's values that are told apart, its rest first."""
        own = self._told[:-1] == np.arange(len(self.values.field))
        return np.flatnonzero(own & (self.values.field == f))

    def with_each(self, slots: IntArray, f: int) -> IntArray:
        """Return slots (k, c + 1) with each value of a field (k * v, c + 1)."""
        of = self.slots_of(f)
        rows = np.repeat(slots, len(of), axis=0)
        rows[:, f] = np.tile(of, len(slots))
        return rows

    def log_probability(self, slots: IntArray) -> FloatArray:
        """Return the log-probability (m,) of categories.

        Slots (m, c + 1) are of the categories and the entity.
        """
        result = np.zeros(len(slots))
        if self.n > 0:
            fill_log_probability(slots, self._tables, result)
        return result

    def usual(self, slots: IntArray) -> FloatArray:
        """Return what the log-probability of such records is on average, and how rare they are.

        Both (m, 2) are as `fill_usual` has them. What a log-probability is above the first does not
        depend on how many categories a record lacks.
        """
        result = np.zeros((len(slots), 2))
        if self.n > 0:
            fill_usual(slots, self._tables, self._average, result)
        return result

    def learn(
        self, codes: FloatArray, share: float, entities: IntArray, fresh: Mask
    ) -> tuple[IntArray, IntArray]:
        """Learn the values (m, c) of a batch; earlier ones count a ``share`` of what they did.

        Return their slots, and those of them that have another value now. ``entities`` (m,) are the
        slots of the records' entities, `MISSING` for none; ``fresh`` (m,) says which began anew
        there.
        """
        if share < 1.0:
            self._forget(share)
        slots, taken = self.values.learn(codes)
        self._make_room(np.unique(taken))
        add_pairs(slots, self._joint)
        self.n += len(codes)
        if self.n - self.fitted >= min(self.fitted // 4, REFIT):
            self.fitted = self.n
            self.parent = parents(gains(self._joint, self.values.members, self.values.ends))
            self.own.fit()
        self.own.reserve(entities)
        self._derive()
        self.end_batch(self._told[slots], entities, fresh, learning=True)
        return slots, taken

    def end_batch(
        self, slots: IntArray, entities: IntArray, fresh: Mask, *, learning: bool
    ) -> None:
        """Let the counts of each entity follow a batch of records with slots (m, c)."""
        self.own.end_batch(slots, entities, fresh, self._tables, learning=learning)

    def add_fields(self, k: int) -> tuple[Mask, Places]:
        """Make room for ``k`` more fields, which no record had.

        Return which slots (s,) are given up for their values, and the places of the others.
        """
        c = len(self.parent)
        gone = self.values.beyond(most_values(c + k))
        rare = np.flatnonzero(gone)
        self._merge(rare, self.values.field[rare])
        self._joint, self.own.counts = self._joint[np.ix_(~gone, ~gone)], self.own.counts[:, ~gone]
        self.values.leave_out(gone)
        slots, fields = self.values.add_fields(k), Places.after(c, c, k)
        self.parent = fields.widened(self.parent, 0, NONE)
        self._joint = slots.widened(slots.widened(self._joint, 0, 0.0), 1, 0.0)
        self._told = np.full(1, MISSING)
        self.own.add_fields(slots, fields)
        self._derive()
        return gone, slots

    def _forget(self, share: float) -> None:
        self._joint *= share
        self.values.forget(share)
        self.own.forget(share)

    def _make_room(self, taken: IntArray) -> None:
        """Make room for new slots; what was known of those ``taken`` becomes that of the rests."""
        more = len(self.values.field) - len(self._joint)
        if more > 0:
            self._joint = np.pad(self._joint, ((0, more), (0, more)))
        self.own.make_room(len(self._joint))
        self._merge(taken, self.values.field[taken])

    def _merge(self, slots: IntArray, rests: IntArray) -> None:
        """Let the records of some slots be those of the ``rests`` of their fields."""
        joint = self._joint
        for slot, rest in zip(slots.tolist(), rests.tolist(), strict=True):
            joint[rest] += joint[slot]
            joint[:, rest] += joint[:, slot]
            joint[slot] = joint[:, slot] = 0.0
        self.own.merge(slots, rests)

    def _derive(self) -> None:
        """Derive from the counts what probabilities are made of."""
        of, records = self.values, self._joint.diagonal()
        once = of.field[(records >= SEEN) & (records < TWICE)]
        before, self._told = self._told, of.told_apart(records)
        no_longer = np.flatnonzero(before[:-1] != self._told[: len(before) - 1])
        self.own.merge(no_longer, of.field[no_longer])
        count = np.asarray(np.bincount(self._told[:-1], records, len(records)), np.float64)
        c = len(self.parent)
        # the rests, with what was not seen yet
        count[:c] += 1.0 + np.bincount(once, minlength=c)
        probability = np.zeros((len(count) + 1, len(count)))
        probability[-1] = count / np.bincount(of.field, count)[of.field]
        order = np.argsort(-depths(self.parent), kind="stable")
        own = self.own
        self._tables = Tables(
            of.members, of.ends, self.parent, order, probability, own.counts, own.votes, own.prior
        )
        fill_probabilities(self._joint, self._told, self._tables)
        self._average = average_log_probability(self._tables)

    def state(self, prefix: str) -> Arrays:
        """Return the arrays that ``restore`` needs; their names begin with ``prefix``."""
        return {
            **self.values.state(prefix),
            prefix + "joint": self._joint,
            prefix + "parent": self.parent,
            prefix + "fitted": np.array([self.n, self.fitted]),
            **self.own.state(prefix),
        }

    def restore(self, arrays: Arrays, prefix: str) -> None:
        """Restore a state of as many fields; StateError if it cannot be one."""
        c = len(self.parent)
        self.values.restore(arrays, prefix)
        of, s = self.values.field, len(self.values.field)
        self._joint, self.parent, fitted = read(arrays, _TREE, prefix, s=s, c=c)
        self.own.restore(arrays, prefix, c, s)
        self.n, self.fitted = fitted.tolist()
        expect(self.fitted <= self.n and (self.parent < c).all(), "the parents of fields")
        expect((depths(self.parent) < c).all(), "a tree of fields")
        expect(s == c or self._joint.diagonal()[c:].sum() > 0.0, "values that have come")
        others = self._joint[(of[:, None] == of) & ~np.eye(s, dtype=np.bool_)]
        expect((others == 0.0).all(), "one value of each field in a record")
        expect((self._joint == self._joint.T).all(), "pairs of categories to be counted once")
        self._derive()
