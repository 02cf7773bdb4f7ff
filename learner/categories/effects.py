"""What categories do to numbers: one effect after the other, each on what those before leave.

First those of single categories, whose shifts add up and whose ratios multiply; then that of two of
them together. A value of both with few records is drawn to what they do apart.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state_schema import LARGEST_LEARNED, Entry, read
from faust_oslrau.learner.stored import Places

from .levels import Levels, Units, add_units, remainder
from .tree import NONE
from .values import MISSING, MOST_SLOTS, Values

SINGLES = 3
"""Categories whose effects on a number add up: further ones hardly ever pay."""

PAIRS = 4
"""Pairs of fields that are told apart as one category. Numbers mostly have the same one."""

STRIDE = 1024
"""A pair's value is that of its first slot times this and that of its second one: more than slots
there are."""

FARTHEST = 8.0
"""Spreads from a level at which a value is clipped when it is learned: a fault must not move what
is usual for a category."""

_PAIRS = {"fields": Entry((PAIRS, 2), NONE, MOST_SLOTS, "<i8")}


class Effects:
    """The levels and spreads of ``d`` numbers for ``s`` slots, of pairs of slots, and all together.

    Attributes
    ----------
    centre, spread
        What a number (d,) is like with average categories.
    """

    def __init__(self, field: IntArray, d: int) -> None:
        self._singles = [Levels(len(field), d) for _ in range(SINGLES)]
        self._pairs, self._of_pairs = Values(PAIRS), Levels(PAIRS, d)
        self._fields = np.full((PAIRS, 2), NONE)
        self.derive(field)

    @property
    def n_fields(self) -> int:
        """Number of the fields that are numbers."""
        return self._of_pairs.n_fields

    @property
    def parents(self) -> IntArray:
        """The categories (r, d) whose effects each number has, the strongest first."""
        return np.array([levels.parent for levels in self._singles])

    def depend(self, numbers: Mask, c: int) -> Mask:
        """Return on which of ``c`` categories some of the ``numbers`` (m, d) depend (m, c)."""
        each = np.arange(c)
        return np.asarray(numbers @ (self.parents[..., None] == each).any(axis=0))

    def units(self, slots: IntArray) -> FloatArray:
        """Return shift, ratio and its logarithm (m, d, 3) of numbers with these slots (m, c).

        A value is the shift plus the ratio times what it would be with average categories.
        """
        return self._units_of(self._slots(slots))

    def _units_of(self, slots: list[IntArray]) -> FloatArray:
        """Return the units (m, d, 3) of numbers with these slots of each effect in use."""
        result = _no_units(len(slots[0]), self.n_fields)
        for levels, units, of in zip(self._used, self._units, slots, strict=True):
            add_units(of, levels.parent, units.table, result)
        return result

    def learn(self, X: FloatArray, slots: IntArray, taken: IntArray, *, settled: bool) -> None:
        """Learn the numbers (m, d) of rows with these slots (m, c), once ``settled`` clipped.

        Nothing is known yet of slots that are new or ``taken`` by another value.
        """
        is_new = slots >= len(self._units[0].table) - 1
        if len(taken) > 0:
            is_new |= np.isin(slots, taken)
        used, before = self._used, self._slots(np.where(is_new, MISSING, slots))
        if settled:
            X = np.clip(X, *self.ranges(self._units_of(before), FARTHEST))
        now = [
            self._learn_pairs(slots, taken) if levels is self._of_pairs else slots
            for levels in used
        ]
        for levels, units, of, of_now in zip(used, self._units, before, now, strict=True):
            X = np.clip(X, -LARGEST_LEARNED, LARGEST_LEARNED)
            levels.learn(X, of_now)
            X = remainder(X, of, of_now, levels.parent, units.table)

    def ranges(self, units: FloatArray, spreads: float) -> tuple[FloatArray, FloatArray]:
        """Return the bounds (m, d) so many spreads from the level, in these units (m, d, 3)."""
        shift, ratio = units[..., 0], units[..., 1]
        level, half = shift + ratio * self.centre, spreads * self.spread * ratio
        return level - half, level + half

    def make_room(self, s: int, taken: IntArray) -> None:
        """Make room for ``s`` slots, and forget what is known of those that were ``taken``."""
        for levels in self._singles:
            levels.resize(s)
            levels.clear(taken)

    def forget(self, share: float) -> None:
        """Reduce all weights to a share of themselves."""
        self._pairs.forget(share)
        for levels in self._used:
            levels.forget(share)

    def choose_parents(self, field: IntArray, of: Mask) -> None:
        """Choose whose effects each number has; those after one that changed begin anew.

        They are those ``of`` some of the categories (c,).
        """
        parents = np.empty((0, self.n_fields), np.int64)
        for number, levels in enumerate(self._singles):
            changed = levels.choose_parent(field, of, parents)
            parents = np.concatenate([parents, levels.parent[None]])
            self._of_pairs.clear_fields(changed)
            for later in self._singles[number + 1 :]:  # there is none without one before it
                later.clear_fields(changed | (levels.parent == NONE))
            if (levels.parent == NONE).all():
                break
        if (self._singles[1].parent != NONE).any():
            self._choose_pairs(parents[:2].T)
            self._of_pairs.choose_parent(self._pairs.field, np.ones(PAIRS, np.bool_), parents[:0])

    def learned_anew(
        self, X: FloatArray, slots: IntArray, field: IntArray, of: Mask
    ) -> tuple[Effects, Mask]:
        """Return the effects on numbers (m, d) of records with these slots (m, c) alone.

        And which numbers (d,) have those of other categories than here, ``of`` some (c,). What is
        known here of the others is kept.
        """
        effects = Effects(field, self.n_fields)
        # one after the other: the next one is learned from what those before leave
        for number, at in enumerate(np.array_split(np.arange(len(X)), SINGLES + 1)):
            effects.learn(X[at], slots[at], np.empty(0, np.int64), settled=number > 0)
            effects.choose_parents(field, of)
            effects.derive(field)
        same = (effects.parents == self.parents).all(axis=0)
        for pairs in (effects._of_pairs, self._of_pairs):
            same &= pairs.parent == NONE
        for levels, before in zip(effects._singles, self._singles, strict=True):
            levels.take_over(before, same)
        effects.derive(field)
        return effects, ~same

    def add_fields(self, places: Places, field: IntArray) -> None:
        """Make room for more numbers, on which no slots of each ``field`` (s,) have effects."""
        for levels in (*self._singles, self._of_pairs):
            levels.add_fields(places)
        self.derive(field)

    def add_categories(self, gone: Mask, slots: Places, field: IntArray) -> None:
        """Make room for more categories, without an effect; their ``slots`` have fields (s,).

        Those ``gone`` (before,) are given up for them.
        """
        for levels in self._singles:
            levels.leave_out(gone)
            levels.add_slots(slots)
        of_gone = self._of_slots(np.flatnonzero(gone))
        self._of_pairs.leave_out(of_gone)
        self._pairs.leave_out(of_gone)
        moved = np.zeros(len(gone), np.int64)
        moved[~gone] = slots.old
        first, second = np.array(np.divmod(self._pairs.codes[PAIRS:], STRIDE), np.int64)
        self._pairs.codes[PAIRS:] = STRIDE * moved[first] + moved[second]
        self.derive(field)

    def derive(self, field: IntArray) -> None:
        """Derive the units of all effects from the levels of the slots of each ``field`` (s,)."""
        # nothing is left to tell after an effect that no number has
        n = sum(int((levels.parent != NONE).any()) for levels in self._singles[:-1])
        self._used = used = self._singles[: n + 1] + [self._of_pairs] * (n > 1)
        self._units: list[Units] = [
            levels.units(self._pairs.field if levels is self._of_pairs else field)
            for levels in used
        ]
        self.centre, self.spread = self._units[0].centre, self._units[0].spread
        for levels, units in zip(used[1:], self._units[1:], strict=True):
            self.centre = np.where(levels.parent == NONE, self.centre, units.centre)
            self.spread = np.where(levels.parent == NONE, self.spread, units.spread)

    def _slots(self, slots: IntArray) -> list[IntArray]:
        """Return the slots that each effect in use knows, given those of single fields (m, c)."""
        return [
            self._pairs.slots(self._codes(slots)) if levels is self._of_pairs else slots
            for levels in self._used
        ]

    def _codes(self, slots: IntArray) -> FloatArray:
        """Return the values (m, `PAIRS`) of both categories as one, NaN where one is missing."""
        first, second = (slots[:, of] for of in self._fields.T)
        known = (first != MISSING) & (second != MISSING) & (self._fields[:, 0] != NONE)
        return np.where(known, STRIDE * first + second, np.nan)

    def _learn_pairs(self, slots: IntArray, taken: IntArray) -> IntArray:
        """Learn the pairs of slots (m, c), some of them ``taken``; return theirs (m, `PAIRS`)."""
        of_pairs, anew = self._pairs.learn(self._codes(slots))
        self._of_pairs.resize(len(self._pairs.field))
        self._of_pairs.clear(anew)
        if len(taken) > 0:
            self._of_pairs.clear(np.flatnonzero(self._of_slots(taken)))
        return of_pairs

    def _of_slots(self, slots: IntArray) -> Mask:
        """Return which pairs are of some slots."""
        found = np.isin(np.divmod(self._pairs.codes, STRIDE), slots)
        return np.asarray(found.any(axis=0))

    def _choose_pairs(self, parents: IntArray) -> None:
        """Tell apart pairs of the first two parents (d, 2), those already known first."""
        wanted = np.unique(np.sort(parents[parents[:, 1] != NONE], axis=1), axis=0).tolist()
        free = [p for p, pair in enumerate(self._fields.tolist()) if pair not in wanted]
        new = [pair for pair in wanted if pair not in self._fields.tolist()]
        for p, pair in zip(free, new, strict=False):
            self._fields[p] = pair
            self._of_pairs.clear(np.flatnonzero(self._pairs.field == p))

    def state(self) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        arrays = self._pairs.state("pair_") | {"pair_fields": self._fields}
        for number, levels in enumerate([*self._singles, self._of_pairs]):
            arrays |= levels.state(f"effect_{number}_")
        return arrays

    def restore(self, arrays: Arrays, field: IntArray, c: int) -> None:
        """Restore a state of as many fields; StateError if it cannot be one."""
        self._pairs.restore(arrays, "pair_")
        (self._fields,) = read(arrays, _PAIRS, "pair_")
        if (self._fields >= c).any():
            raise StateError("state: expected pairs of fields")
        for number, levels in enumerate(self._singles):
            levels.restore(arrays, f"effect_{number}_", len(field), c)
        self._of_pairs.restore(arrays, f"effect_{SINGLES}_", len(self._pairs.field), PAIRS)
        self.derive(field)


def _no_units(m: int, d: int) -> FloatArray:
    """Return shift, ratio and its logarithm (m, d, 3) of numbers that stay as they are."""
    units = np.zeros((m, d, 3))
    units[..., 1] = 1.0
    return units
