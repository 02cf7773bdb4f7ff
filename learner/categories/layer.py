"""Categories: exact probabilities of fields without order, and numbers in the units of theirs.

The density of a record is that of its categories times that of its numbers given these. The first
is a tree (`tree`). For the second, each number is shifted and scaled by what the categories that
tell most of it do to it (`effects`), and what is left is the network's to learn. Records of
categories alone have one number that is always missing, so that the network has something to hold.
Where it is known of which entity a record is, its own records tell of its categories (`by_entity`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.protocol import InUnits
from faust_oslrau.learner.state_schema import Entry, counts, expect, read
from faust_oslrau.learner.vector.blocks import row_sums

from .by_entity import EntityCounts
from .effects import Effects
from .levels import TINY
from .missing import MOST, VALUES_AT_ONCE, LogDensity, likeliest
from .tree import (
    NONE,
    SEEN,
    TWICE,
    Tables,
    add_pairs,
    depths,
    fill_log_probability,
    fill_log_rarity,
    fill_probabilities,
    gains,
    log_shares,
    parents,
)
from .values import MISSING, MOST_SLOTS, Values

MOST_FIELDS = 128
"""Most columns that are categories."""

REFIT = 4096
"""Most records between two choices of parents; less while the stream is young."""

LARGEST_DEVIATION = 1e3
"""Deviations from a level beyond which a number says no more of its category."""

SETTLED = 240
"""Records from which on the values that are learned are clipped."""


class CategoricalRows(NamedTuple):
    """Rows of m records, their numbers as they would be with average categories.

    Attributes
    ----------
    rows
        The numbers (m, d).
    of_categories
        The log-probability of the categories, and that of one as rare as the rarest (m, 2). Where
        one is missing on which numbers depend, the log-weight of `likeliest` for the first.
    log_jacobian
        Sum (m,) of the logarithms of the observed numbers' slopes.
    units
        Shift and ratio of each number (m, d, 2): a value is the shift plus the ratio times the one
        here.
    slots
        The slots of the categories, and the entity (m, c + 1); units are those of the likeliest
        where one is missing.
    """

    rows: FloatArray
    of_categories: FloatArray
    log_jacobian: FloatArray
    units: FloatArray
    slots: IntArray

    @property
    def log_probability(self) -> FloatArray:
        """The log-probability (m,) of the categories, or their log-weight."""
        return self.of_categories[:, 0]


_TREE = {
    "joint": Entry(("s", "s"), 0.0),
    "parent": Entry(("c",), NONE, MOST_SLOTS, "<i8"),
    "fitted": counts(2),
    "rows": Entry(("n", "w"), nan=True),
}


class Categories:
    """The last ``c`` columns of rows, which are categories, and the numbers given them.

    Changes in ``end_batch`` alone, which the scorer calls at learning boundaries. All records are
    learned: how often a category comes is the measure of how unusual it is.

    Parameters
    ----------
    c
        Number of the columns.
    by_entity
        Whether it is known of which entity each record is.

    Attributes
    ----------
    values
        The values that are told apart.
    parent
        The field (c,) that tells most of each category, `NONE` for none.
    alone
        Whether rows have no other columns, d = 0; their numbers are then one that is missing.
    """

    def __init__(self, c: int, *, by_entity: bool = False) -> None:
        require(0 < c <= MOST_FIELDS, "n_categories", c, f"from 1 to {MOST_FIELDS}")
        self.values = Values(c)
        self.parent = np.full(c, NONE)
        self.alone = False
        self._own = EntityCounts(c) if by_entity else None
        self._joint = np.zeros((c, c))
        self._effects = Effects(self.values.field, 0)
        self._n, self._fitted = 0, 0
        self._pending: list[FloatArray] = []
        self._told = np.full(1, MISSING)
        self._derive()

    @property
    def c(self) -> int:
        """Number of the columns that are categories."""
        return len(self.parent)

    def take(
        self,
        rows: FloatArray,
        density: LogDensity | None = None,
        entities: tuple[IntArray, Mask] | None = None,
    ) -> CategoricalRows:
        """Return the next rows (m, d + c), with numbers as they would be with average categories.

        They are learned at the next boundary. A ``density`` of such numbers makes sums over missing
        categories exact; without one, levels and spreads tell how likely their values are.
        ``entities`` are their slots (m,), and which are new there, if they are known.
        """
        self.alone = rows.shape[1] == self.c
        if self._own is None or entities is None:
            self._pending.append(rows)
            return self.average(rows, density)
        self._pending.append(np.column_stack([rows, *entities]))
        return self.average(rows, density, self._own.take(*entities))

    def average(
        self,
        rows: FloatArray,
        density: LogDensity | None = None,
        entities: IntArray | None = None,
    ) -> CategoricalRows:
        """Return rows (m, d + c) as ``take`` would return them now, of some ``entities`` (m,)."""
        X, slots = self.numbers(rows), self._told[self.values.slots(self._codes(rows))]
        known = np.full(len(rows), MISSING) if entities is None else entities
        slots = np.column_stack([slots, known])
        if self._effects.n_fields != X.shape[1]:
            self._effects = Effects(self.values.field, X.shape[1])
        # rounding may bring a probability above 1
        log_probability = np.minimum(row_sums(self.log_probability(slots)), 0.0)
        filled = slots
        if (slots[:, : self.c] == MISSING).any():
            filled, log_probability = self._filled(X, slots, log_probability, density)
        own = self.in_units(X, filled)
        of_categories = np.column_stack([log_probability, self._log_rarity(slots)])
        return CategoricalRows(own.rows, of_categories, own.log_jacobian, own.units, slots)

    def in_units(self, X: FloatArray, slots: IntArray) -> InUnits:
        """Return numbers (m, d) of records with slots (m, c) as with average categories."""
        units = self._effects.units(slots)
        slopes = np.where(np.isnan(X), 0.0, -np.log(units[..., 1]))
        return InUnits((X - units[..., 0]) / units[..., 1], row_sums(slopes), units)

    def _filled(
        self, X: FloatArray, slots: IntArray, log_weight: FloatArray, density: LogDensity | None
    ) -> tuple[IntArray, FloatArray]:
        """Return slots and log-weights (m,) with the `likeliest` values where it matters."""
        needed = (slots[:, : self.c] == MISSING) & self._effects.depend(~np.isnan(X), self.c)
        filled, log_weight = slots.copy(), log_weight.copy()
        strongest = dict.fromkeys(self._effects.parents.ravel().tolist())
        patterns = {row.tobytes(): row for row in needed[needed.any(axis=1)]}
        for which in patterns.values():
            alike = np.flatnonzero((needed == which).all(axis=1))
            fields = [f for f in strongest if f != NONE and which[f]]
            n_pieces = len(alike) * MOST * (X.shape[1] + self.c) // VALUES_AT_ONCE + 1
            for at in np.array_split(alike, min(n_pieces, len(alike))):
                filled[at], log_weight[at] = likeliest(self, slots[at], X[at], fields, density)
        return filled, log_weight

    def of_unknown(self, rows: FloatArray) -> FloatArray:
        """Return numbers (m, d) as ``take`` returns them in the fields' units.

        For records whose categories are not known.
        """
        if self._effects.n_fields != rows.shape[1]:
            return rows
        shift, ratio = self._effects.units(np.full((1, self.c), MISSING))[0].T
        return np.asarray(shift + ratio * rows)

    def codes(self) -> FloatArray:
        """Return the values that are told apart, and those of rows that wait to be learned."""
        pending = [self._codes(self._without_entities(rows)).ravel() for rows in self._pending]
        return np.concatenate([self.values.codes, *pending])

    def numbers(self, rows: FloatArray) -> FloatArray:
        """Return the columns (m, d) of rows (m, d + c) that are numbers; a missing one for none."""
        d = rows.shape[1] - self.c
        return np.ascontiguousarray(rows[:, :d]) if d > 0 else np.full((len(rows), 1), np.nan)

    @property
    def has_begun(self) -> bool:
        """Whether any record was learned."""
        return self._n > 0

    def parents(self) -> list[list[int]]:
        """Return the categories that each number, then each category, depends on."""
        every = [*self._effects.parents.T, *self.parent[:, None]]
        return [of[of != NONE].tolist() for of in every]

    def log_probability(self, slots: IntArray) -> FloatArray:
        """Return the log-probability of the categories, (m, c) numbers that add up to it."""
        result = np.zeros((len(slots), self.c))
        if self._n > 0:
            fill_log_probability(slots, self._tables, result)
        return result

    def _log_rarity(self, slots: IntArray) -> FloatArray:
        result = np.zeros(len(slots))
        if self._n > 0:
            fill_log_rarity(slots, self._tables, result)
        return result

    def given_others(
        self, slots: IntArray, X: FloatArray
    ) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        """Yield the slots (v,) of each field, and the log-probability (k, v) of each of them.

        Given the other slots (k, c), and given the numbers (k, d) as well, as `gaussian`.
        """
        each = [self.slots_of(f) for f in range(self.c)]
        rows = np.concatenate([self.with_each(slots, f) for f in range(self.c)])
        numbers = np.concatenate([np.repeat(X, len(of), axis=0) for of in each])
        terms = np.stack([row_sums(self.log_probability(rows)), self.gaussian(rows, numbers)])
        ends = len(slots) * np.cumsum([len(of) for of in each])
        for of, pair in zip(each, np.split(terms, ends[:-1], axis=1), strict=True):
            joint, log_density = pair.reshape(2, -1, len(of))
            log_p = log_shares(joint)
            yield of, log_p, log_shares(log_p + log_density)

    def gaussian(self, slots: IntArray, X: FloatArray) -> FloatArray:
        """Return log-density (m,) of numbers (m, d) given slots (m, c), as independent Gaussians.

        But for a constant.
        """
        of = self._effects
        shift, ratio = np.moveaxis(of.units(slots), -1, 0)
        deviation = ratio * np.maximum(of.spread, TINY)
        z = (X - shift - ratio * of.centre) / deviation
        z = np.clip(z, -LARGEST_DEVIATION, LARGEST_DEVIATION)
        return row_sums(np.nan_to_num(-0.5 * z * z - np.log(deviation)))

    def with_each(self, slots: IntArray, f: int) -> IntArray:
        """Return slots (k, c) with each value of a field (k * v, c)."""
        of = self.slots_of(f)
        rows = np.repeat(slots, len(of), axis=0)
        rows[:, f] = np.tile(of, len(slots))
        return rows

    def slots_of(self, f: int) -> IntArray:
        """Return the slots of a field's values that are told apart, its rest first."""
        own = self._told[:-1] == np.arange(len(self.values.field))
        return np.flatnonzero(own & (self.values.field == f))

    @property
    def has_pending(self) -> bool:
        """Whether rows wait to be learned; those that are learned anew were before."""
        return len(self._pending) > 0

    def end_batch(self, memory: float | None, *, learning: bool) -> FloatArray:
        """Learn all rows (m, d + c) since the last boundary, and return them.

        With a ``memory``, forget older ones.
        """
        pending, self._pending = np.concatenate(self._pending), []
        rows = self._without_entities(pending)
        slots = np.full((len(rows), self.c), MISSING)
        if self._own is not None and learning:
            known = self._told[self.values.slots(self._codes(rows))]
            self._own.choose(known, *self._entities(pending), self._tables)
        if learning:
            slots = self._learn(rows, memory)
        if self._own is not None:
            self._own.count(slots, *self._entities(pending))
        return rows

    def _without_entities(self, pending: FloatArray) -> FloatArray:
        """Return the columns (m, d + c) of rows that wait to be learned."""
        return pending if self._own is None else pending[:, :-2]

    def _entities(self, pending: FloatArray) -> tuple[IntArray, Mask]:
        """Return the slots (m,) of the entities of such rows, and which are new there."""
        return pending[:, -2].astype(np.int64), pending[:, -1] > 0.0

    def _learn(self, rows: FloatArray, memory: float | None) -> IntArray:
        """Learn rows (m, d + c); return the slots (m, c) of their categories."""
        X, codes = self.numbers(rows), self._codes(rows)
        if memory is not None:
            self._forget(memory / (memory + len(rows)))
        slots, taken = self.values.learn(codes)
        self._make_room(taken)
        self._effects.learn(X, slots, taken, settled=self._n > SETTLED)
        add_pairs(slots, self._joint)
        self._n += len(rows)
        if self._n - self._fitted >= min(self._fitted // 4, REFIT):
            self._choose_parents()
        self._derive()
        return self._told[slots]

    def _codes(self, rows: FloatArray) -> FloatArray:
        """Return the columns (m, c) that are categories."""
        return np.ascontiguousarray(rows[:, rows.shape[1] - self.c :])

    def _forget(self, share: float) -> None:
        self._joint *= share
        self.values.forget(share)
        self._effects.forget(share)
        if self._own is not None:
            self._own.forget(share)

    def _make_room(self, taken: IntArray) -> None:
        """Make room for new slots; what was known of those ``taken`` becomes that of the rests."""
        more = len(self.values.field) - len(self._joint)
        if more > 0:
            self._joint = np.pad(self._joint, ((0, more), (0, more)))
        self._add_to_rests(np.unique(taken))
        self._effects.make_room(len(self._joint), taken)
        if self._own is not None:
            self._own.make_room(len(self._joint))
            self._own.merge(np.unique(taken), self.values.field[np.unique(taken)])

    def _add_to_rests(self, slots: IntArray) -> None:
        """Let the records of some slots be those of the rests of their fields."""
        joint = self._joint
        for slot in slots.tolist():
            rest = self.values.field[slot]
            joint[rest] += joint[slot]
            joint[:, rest] += joint[:, slot]
            joint[slot] = joint[:, slot] = 0.0

    def _choose_parents(self) -> None:
        self._fitted = self._n
        self.parent = parents(gains(self._joint, self.values.members, self.values.ends))
        self._effects.choose_parents(self.values.field, self.c)

    def _derive(self) -> None:
        """Derive from the counts what probabilities and units are made of."""
        of, records = self.values, self._joint.diagonal()
        once = of.field[(records >= SEEN) & (records < TWICE)]
        before, self._told = self._told, of.told_apart(records)
        if self._own is not None:
            no_longer = np.flatnonzero(before[:-1] != self._told[: len(before) - 1])
            self._own.merge(no_longer, of.field[no_longer])
        count = np.asarray(np.bincount(self._told[:-1], records, len(records)), np.float64)
        # the rests, with what was not seen yet
        count[: self.c] += 1.0 + np.bincount(once, minlength=self.c)
        probability = np.zeros((len(count) + 1, len(count)))
        probability[-1] = count / np.bincount(of.field, count)[of.field]
        order = np.argsort(-depths(self.parent), kind="stable")
        own = self._own or EntityCounts(self.c)
        self._tables = Tables(
            of.members, of.ends, self.parent, order, probability, own.counts, own.strength
        )
        fill_probabilities(self._joint, self._told, self._tables)
        self._effects.derive(of.field)

    def state(self) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        return {
            **self.values.state("category_"),
            **self._effects.state(),
            "category_joint": self._joint,
            "category_parent": self.parent,
            "category_fitted": np.array([self._n, self._fitted]),
            "category_rows": np.concatenate(self._pending or [np.empty((0, 0))]),
            **({} if self._own is None else self._own.state("category_")),
        }

    def restore(self, arrays: Arrays, d: int | None, pending: int) -> None:
        """Restore a state of as many columns beside ``d``, ``pending`` rows of which wait.

        StateError if it cannot be one.
        """
        c = self.c
        self.values.restore(arrays, "category_")
        s = len(self.values.field)
        self._joint, self.parent, fitted, rows = read(
            arrays, _TREE, "category_", s=s, c=c, n=pending
        )
        if pending > 0:
            width = c + (0 if self.alone else d or 0) + 2 * (self._own is not None)
            expect(rows.shape[1] == width, "pending rows with their categories")
            self._pending = [rows]
        if self._own is not None:
            self._own.restore(arrays, "category_", c, s)
            if pending > 0:
                self._own.resume(*self._entities(rows))
        self._n, self._fitted = fitted.tolist()
        expect(self._fitted <= self._n and (self.parent < c).all(), "the parents of fields")
        expect((depths(self.parent) < c).all(), "a tree of fields")
        of, count = self.values.field, self._joint.diagonal()
        expect(s == c or count[c:].sum() > 0.0, "values that have come")
        others = self._joint[(of[:, None] == of) & ~np.eye(s, dtype=np.bool_)]
        expect((others == 0.0).all(), "one value of each field in a record")
        expect((self._joint == self._joint.T).all(), "pairs of categories to be counted once")
        has_begun = arrays.get("effect_0_parents", np.empty(0)).size > 0
        self._effects = Effects(of, d or 0 if has_begun else 0)
        self._effects.restore(arrays, of, c)
        self._derive()
