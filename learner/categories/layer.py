"""Categories: exact probabilities of fields without order, and numbers in the units of theirs.

The density of a record is that of its categories times that of its numbers given these. The first
is a tree (`tree`). For the second, each number is shifted and scaled by what the categories that
tell most of it do to it (`effects`), and what is left is the network's to learn. Records of
categories alone have one number that is always missing, so that the network has something to hold.
Where it is known of which entity a record is, its own records tell of its categories (`by_entity`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.protocol import InUnits
from faust_oslrau.learner.state_schema import Entry, expect, read
from faust_oslrau.learner.stored import Places
from faust_oslrau.learner.vector.blocks import row_sums

from .counts import CategoryCounts
from .effects import Effects
from .levels import TINY, in_units
from .missing import MOST, VALUES_AT_ONCE, LogDensity, combined, likeliest
from .rows import BESIDE, CategoricalRows, Given, check_given, nobody
from .tree import NONE, log_shares
from .values import MISSING

MOST_FIELDS = 128
"""Most columns that are categories."""

LARGEST_DEVIATION = 1e3
"""Deviations from a level beyond which a number says no more of its category."""

LogDensityOf = Callable[[FloatArray, IntArray], FloatArray]
"""Returns the log-density (n,) of numbers (n, d) of some records (n,)."""

SETTLED = 240
"""Records from which on the values that are learned are clipped."""


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
        times: IntArray | None = None,
    ) -> CategoricalRows:
        """Return the next rows (m, d + c), with numbers as they would be with average categories.

        They are learned at the next boundary, with their ``times`` (m,) in milliseconds beside
        them. A ``density`` of such numbers makes sums over missing
        categories exact; without one, levels and spreads tell how likely their values are.
        ``entities`` are their slots (m,), and which are new there, if they are known.
        """
        self.alone = rows.shape[1] == self.c
        own = nobody(len(rows)) if entities is None else entities
        at = np.full(len(rows), -1) if times is None else times
        self._pending.append(np.column_stack([rows, *own, at]))
        return self.average(rows, density, self.counts.own.take(*own))

    def average(
        self,
        rows: FloatArray,
        density: LogDensity | None = None,
        entities: IntArray | None = None,
    ) -> CategoricalRows:
        """Return rows (m, d + c) as ``take`` would return them now, of some ``entities`` (m,)."""
        X, slots = self.numbers(rows), self.counts.slots(self.codes_of(rows))
        own = nobody(len(rows))[0] if entities is None else self.counts.own.held(entities)
        slots = np.column_stack([slots, own])
        if self._effects.n_fields != X.shape[1]:
            self._effects = Effects(self.counts.values.field, X.shape[1])
        # rounding may bring a probability above 1
        log_probability = np.minimum(self.counts.log_probability(slots), 0.0)
        filled, log_probability = self._filled(X, slots, log_probability, density)
        average = self.in_units(X, filled)
        of_categories = np.column_stack([log_probability, self.counts.usual(slots)])
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
        filled, log_weight = slots.copy(), log_weight.copy()
        for at, fields in self._lacking(X, slots):
            filled[at], log_weight[at] = likeliest(self, slots[at], X[at], fields, density)
        return filled, log_weight

    def _lacking(self, X: FloatArray, slots: IntArray) -> Iterator[tuple[IntArray, list[int]]]:
        """Yield some records (k,), and the categories that they lack and their numbers depend on.

        The categories that tell most come first.
        """
        lacks = slots[:, : self.c] == MISSING
        if not lacks.any():
            return
        needed = lacks & self._effects.depend(~np.isnan(X), self.c)
        strongest = dict.fromkeys(self._effects.parents.ravel().tolist())
        patterns = {row.tobytes(): row for row in needed[needed.any(axis=1)]}
        for which in patterns.values():
            alike = np.flatnonzero((needed == which).all(axis=1))
            fields = [f for f in strongest if f != NONE and which[f]]
            n_pieces = len(alike) * MOST * (X.shape[1] + self.c) // VALUES_AT_ONCE + 1
            for at in np.array_split(alike, min(n_pieces, len(alike))):
                yield at, fields

    def summed(
        self, X: FloatArray, slots: IntArray, density: LogDensityOf
    ) -> tuple[IntArray, FloatArray]:
        """Return which records lack a category on which their numbers depend, and their density.

        That is the log-density (k,) of numbers (m, d) and known slots (m, c), summed over all
        values of the others. ``density`` tells that of numbers of some records (n,), each as it
        would be with average categories.
        """
        records, total = [np.empty(0, np.int64)], [np.empty(0)]
        for at, fields in self._lacking(X, slots):
            records.append(at)
            of_each = _repeated(density, at)
            total.append(combined(self, slots[at], X[at], fields, of_each).total)
        return np.concatenate(records), np.concatenate(total)

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
        pending = [self.codes_of(rows[:, :-BESIDE]).ravel() for rows in self._pending]
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
        with np.errstate(over="ignore"):  # which counts as far away
            z = (X - shift - ratio * of.centre) / (ratio * spread)
        z = np.clip(z, -LARGEST_DEVIATION, LARGEST_DEVIATION)
        return row_sums(np.nan_to_num(-0.5 * z * z - log_ratio - np.log(spread)))

    @property
    def has_pending(self) -> bool:
        """Whether rows wait to be learned; those that are learned anew were before."""
        return len(self._pending) > 0

    @property
    def pending(self) -> Given:
        """The rows since the last boundary."""
        return Given.of(np.concatenate(self._pending))

    def end_batch(self, memory: float | None, of: Mask | None = None, *, learning: bool) -> None:
        """Learn all rows since the last boundary.

        With a ``memory``, forget older ones. Numbers depend on categories ``of`` some (c,), or of
        all.
        """
        pending, self._pending = self.pending, []
        if learning:
            effective = np.ones(self.c, np.bool_) if of is None else of
            self._learn(pending.rows, memory, effective, pending.slots, pending.fresh)
        else:
            unknown = np.full((len(pending.rows), self.c), MISSING)
            self.counts.end_batch(unknown, pending.slots, pending.fresh, learning=False)

    def learn_effects_anew(self, rows: FloatArray, of: Mask) -> Mask:
        """Learn from rows (m, d + c) alone on which categories numbers depend, ``of`` some (c,).

        Return which numbers (d,) depend on others than before.
        """
        X, slots = self.numbers(rows), self.counts.slots(self.codes_of(rows))
        field = self.counts.values.field
        self._effects, changed = self._effects.learned_anew(X, slots, field, of)
        return changed

    def _learn(
        self, rows: FloatArray, memory: float | None, of: Mask, entities: IntArray, fresh: Mask
    ) -> None:
        counts, effects = self.counts, self._effects
        share = 1.0 if memory is None else memory / (memory + len(rows))
        settled = counts.n > SETTLED
        slots, taken = counts.learn(self.codes_of(rows), share, entities, fresh)
        if share < 1.0:
            effects.forget(share)
        effects.make_room(len(counts.values.field), taken)
        effects.learn(self.numbers(rows), slots, taken, settled=settled)
        if counts.fitted == counts.n:
            effects.choose_parents(counts.values.field, of)
        effects.derive(counts.values.field)

    def codes_of(self, rows: FloatArray) -> FloatArray:
        """Return the columns (m, c) that are categories."""
        return np.ascontiguousarray(rows[:, rows.shape[1] - self.c :])

    def add_fields(self, places: Places) -> None:
        """Make room for more numbers, which the rows that wait to be learned lack."""
        self._effects.add_fields(places, self.counts.values.field)
        d, beside = 0 if self.alone else len(places.old), self.c + BESIDE
        wider = Places.after(d, d + beside, places.n - d)
        self._pending = [wider.widened(rows, 1) for rows in self._pending]
        self.alone = False

    @classmethod
    def beside(cls, c: int, pending: int, d: int) -> Self:
        """Return ``c`` new categories beside ``d`` numbers, which ``pending`` rows do not have."""
        categories = cls(c)
        if pending > 0:
            rows = np.full((pending, d + c), np.nan)
            categories._pending = [np.column_stack([rows, *nobody(pending), np.full(pending, -1)])]
        return categories

    def add_categories(self, k: int) -> None:
        """Make room for ``k`` more categories, which no record had.

        Values for which there is no room beside those of so many are told apart no more.
        """
        gone, slots = self.counts.add_fields(k)
        self._effects.add_categories(gone, slots, self.counts.values.field)
        for at, rows in enumerate(self._pending):
            width = rows.shape[1]
            self._pending[at] = Places.after(width - BESIDE, width, k).widened(rows, 1)

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
            width = c + (0 if self.alone else d or 0) + BESIDE
            expect(rows.shape[1] == width, "pending rows with their categories")
            check_given(rows)
            self._pending = [rows]
            self.counts.own.resume(self.pending.slots, self.pending.fresh)
        field = self.counts.values.field
        has_begun = arrays.get("effect_0_parents", np.empty(0)).size > 0
        self._effects = Effects(field, d or 0 if has_begun else 0)
        self._effects.restore(arrays, field, c)


def _repeated(density: LogDensityOf, records: IntArray) -> LogDensity:
    """Return the density of rows as many of which, one after the other, are of each record."""
    return lambda X: density(X, np.repeat(records, len(X) // len(records)))
