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
from faust_oslrau.learner.state import MOST_RECORDS
from faust_oslrau.learner.state_schema import Entry, expect, read
from faust_oslrau.learner.stored import Places
from faust_oslrau.learner.vector.blocks import row_sums

from .counts import CategoryCounts
from .effects import Effects
from .levels import TINY, in_units
from .missing import MOST, VALUES_AT_ONCE, LogDensity, likeliest
from .tree import NONE, log_shares
from .values import MISSING

MOST_FIELDS = 128
"""Most columns that are categories."""

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
        Shift, ratio and its logarithm of each number (m, d, 3): a value is the shift plus the ratio
        times the one here.
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


_ROWS = {"rows": Entry(("n", "w"), nan=True)}


class Categories:
    """The last ``c`` columns of rows, which are categories, and the numbers given them.

    Changes in ``end_batch`` alone, which the scorer calls at learning boundaries. All records are
    learned: how often a category comes is the measure of how unusual it is.

    Parameters
    ----------
    c
        Number of the columns.

    Attributes
    ----------
    counts
        How often values and pairs of them came: the probabilities of categories.
    alone
        Whether rows have no other columns, d = 0; their numbers are then one that is missing.
    """

    def __init__(self, c: int) -> None:
        require(0 < c <= MOST_FIELDS, "n_categories", c, f"from 1 to {MOST_FIELDS}")
        self.counts = CategoryCounts(c)
        self.alone = False
        self._effects = Effects(self.counts.values.field, 0)
        self._pending: list[FloatArray] = []

    @property
    def c(self) -> int:
        """Number of the columns that are categories."""
        return len(self.counts.parent)

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
        own = nobody(len(rows)) if entities is None else entities
        self._pending.append(np.column_stack([rows, *own]))
        return self.average(rows, density, self.counts.own.take(*own))

    def average(
        self,
        rows: FloatArray,
        density: LogDensity | None = None,
        entities: IntArray | None = None,
    ) -> CategoricalRows:
        """Return rows (m, d + c) as ``take`` would return them now, of some ``entities`` (m,)."""
        X, slots = self.numbers(rows), self.counts.slots(self._codes(rows))
        own = nobody(len(rows))[0] if entities is None else entities
        slots = np.column_stack([slots, own])
        if self._effects.n_fields != X.shape[1]:
            self._effects = Effects(self.counts.values.field, X.shape[1])
        # rounding may bring a probability above 1
        log_probability = np.minimum(self.counts.log_probability(slots), 0.0)
        filled = slots
        if (slots[:, : self.c] == MISSING).any():
            filled, log_probability = self._filled(X, slots, log_probability, density)
        average = self.in_units(X, filled)
        of_categories = np.column_stack([log_probability, self.counts.log_rarity(slots)])
        return CategoricalRows(
            average.rows, of_categories, average.log_jacobian, average.units, slots
        )

    def in_units(self, X: FloatArray, slots: IntArray) -> InUnits:
        """Return numbers (m, d) of records with slots (m, c) as with average categories."""
        units = self._effects.units(slots)
        return InUnits(*in_units(X, units), units)

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
        shift, ratio, _ = self._effects.units(np.full((1, self.c), MISSING))[0].T
        return np.asarray(shift + ratio * rows)

    def codes(self) -> FloatArray:
        """Return the values that are told apart, and those of rows that wait to be learned."""
        pending = [self._codes(rows[:, :-2]).ravel() for rows in self._pending]
        return np.concatenate([self.counts.values.codes, *pending])

    def numbers(self, rows: FloatArray) -> FloatArray:
        """Return the columns (m, d) of rows (m, d + c) that are numbers; a missing one for none."""
        d = rows.shape[1] - self.c
        return np.ascontiguousarray(rows[:, :d]) if d > 0 else np.full((len(rows), 1), np.nan)

    @property
    def has_begun(self) -> bool:
        """Whether any record was learned."""
        return self.counts.n > 0

    def parents(self) -> list[list[int]]:
        """Return the categories that each number, then each category, depends on."""
        every = [*self._effects.parents.T, *self.counts.parent[:, None]]
        return [of[of != NONE].tolist() for of in every]

    def given_others(
        self, slots: IntArray, X: FloatArray
    ) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        """Yield the slots (v,) of each field, and the log-probability (k, v) of each of them.

        Given the other slots (k, c), and given the numbers (k, d) as well, as `gaussian`.
        """
        counts, fields = self.counts, range(self.c)
        each = [counts.slots_of(f) for f in fields]
        rows = np.concatenate([counts.with_each(slots, f) for f in fields])
        numbers = np.concatenate([np.repeat(X, len(of), axis=0) for of in each])
        terms = np.stack([counts.log_probability(rows), self.gaussian(rows, numbers)])
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
        shift, ratio, log_ratio = np.moveaxis(of.units(slots), -1, 0)
        spread = np.maximum(of.spread, TINY)
        z = (X - shift - ratio * of.centre) / (ratio * spread)
        z = np.clip(z, -LARGEST_DEVIATION, LARGEST_DEVIATION)
        return row_sums(np.nan_to_num(-0.5 * z * z - log_ratio - np.log(spread)))

    @property
    def has_pending(self) -> bool:
        """Whether rows wait to be learned; those that are learned anew were before."""
        return len(self._pending) > 0

    def end_batch(self, memory: float | None, *, learning: bool) -> FloatArray:
        """Learn all rows (m, d + c) since the last boundary, and return them.

        With a ``memory``, forget older ones.
        """
        pending, self._pending = np.concatenate(self._pending), []
        rows, (entities, fresh) = pending[:, :-2], _entities(pending)
        if learning:
            self._learn(rows, memory, entities, fresh)
        else:
            unknown = np.full((len(rows), self.c), MISSING)
            self.counts.end_batch(unknown, entities, fresh, learning=False)
        return rows

    def _learn(
        self, rows: FloatArray, memory: float | None, entities: IntArray, fresh: Mask
    ) -> None:
        counts, effects = self.counts, self._effects
        share = 1.0 if memory is None else memory / (memory + len(rows))
        settled = counts.n > SETTLED
        slots, taken = counts.learn(self._codes(rows), share, entities, fresh)
        if share < 1.0:
            effects.forget(share)
        effects.make_room(len(counts.values.field), taken)
        effects.learn(self.numbers(rows), slots, taken, settled=settled)
        if counts.fitted == counts.n:
            effects.choose_parents(counts.values.field, self.c)
        effects.derive(counts.values.field)

    def _codes(self, rows: FloatArray) -> FloatArray:
        """Return the columns (m, c) that are categories."""
        return np.ascontiguousarray(rows[:, rows.shape[1] - self.c :])

    def add_fields(self, places: Places) -> None:
        """Make room for more numbers, which the rows that wait to be learned lack."""
        self._effects.add_fields(places, self.counts.values.field)
        wider = places.beside(self.c + 2)  # the entities, too
        self._pending = [wider.widened(rows, 1) for rows in self._pending]

    def state(self) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        return {
            **self.counts.state("category_"),
            **self._effects.state(),
            "category_rows": np.concatenate(self._pending or [np.empty((0, 0))]),
        }

    def restore(self, arrays: Arrays, d: int | None, pending: int) -> None:
        """Restore a state of as many columns beside ``d``, ``pending`` rows of which wait.

        StateError if it cannot be one.
        """
        c = self.c
        self.counts.restore(arrays, "category_")
        (rows,) = read(arrays, _ROWS, "category_", n=pending)
        if pending > 0:
            width = c + (0 if self.alone else d or 0) + 2
            expect(rows.shape[1] == width, "pending rows with their categories")
            is_slot = (rows[:, -2] >= MISSING) & (rows[:, -2] < MOST_RECORDS)
            expect(is_slot.all(), "the entities of pending rows")
            self._pending = [rows]
            self.counts.own.resume(*_entities(rows))
        field = self.counts.values.field
        has_begun = arrays.get("effect_0_parents", np.empty(0)).size > 0
        self._effects = Effects(field, d or 0 if has_begun else 0)
        self._effects.restore(arrays, field, c)


def nobody(m: int) -> tuple[IntArray, Mask]:
    """Return the slots (m,) of records of no entity, and which are new there."""
    return np.full(m, MISSING), np.zeros(m, np.bool_)


def _entities(pending: FloatArray) -> tuple[IntArray, Mask]:
    """Return the slots (m,) of the entities of rows that wait, and which are new there."""
    return pending[:, -2].astype(np.int64), pending[:, -1] > 0.0
