"""Silences: records that are expected and do not come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.keys import Key, entity_name
from faust_oslrau.learner.scoring.block import BEGAN, ENDED, Silence, SilentEntity
from faust_oslrau.learner.state_schema import Entry, expect
from faust_oslrau.learner.stored import SLOTS as OF_SLOTS
from faust_oslrau.learner.stored import Stored, doubled

from .following import (
    AGAIN,
    FEWEST,
    LARGEST,
    LAST,
    MONTH,
    N_NUMBERS,
    N_PARTITION,
    N_SILENT,
    NEW,
    NOW,
    OLD,
    SLOTS,
    follow,
    longest_usual,
)
from .subjects import PARTITION, Names, own_slots, packed_names, read_names

_UNKNOWN = np.where(np.arange(N_NUMBERS) == LAST, -1.0, 0.0)


class Silences(Stored):
    """Finds silences that are longer than the gaps between the records of an entity so far.

    And those of the partition. All follows from the records' time stamps, one record after the
    other. Each entity has a slot, which its next record after it gave way begins anew.
    """

    schema: ClassVar = {
        "_partition": Entry((N_PARTITION,), 0.0),
        "_numbers": Entry((OF_SLOTS, N_NUMBERS), new=_UNKNOWN),
        "_largest": Entry((OF_SLOTS, 2, LARGEST), dtype="<f4"),
        "_deadlines": Entry((OF_SLOTS,), -np.inf, np.inf, new=np.inf),
        "_last": Entry((OF_SLOTS, 2), dtype="<i8", new=-1),
    }
    prefix = "silence_"

    def __init__(self) -> None:
        self._partition = np.zeros(N_PARTITION)
        self._partition[SLOTS] = 1.0
        self._numbers = np.zeros((0, N_NUMBERS))
        self._largest = np.zeros((0, 2, LARGEST), np.float32)
        self._deadlines = np.empty(0)
        self._last = np.empty((0, 2), np.int64)
        self._names: Names = [None]
        self.reserve(1)

    @property
    def n_silent(self) -> int:
        """The number of entities that are silent after the last row."""
        return int(self._partition[N_SILENT])

    def silent(self, most: int) -> list[SilentEntity]:
        """Return up to ``most`` entities that are silent after the last row, the longest first."""
        if self.n_silent == 0:
            return []
        is_known = self._numbers[:, NEW] + self._numbers[:, OLD] >= FEWEST
        is_known[PARTITION] = False
        slots = np.flatnonzero(is_known & (self._deadlines == np.inf))
        slots = slots[np.argsort(self._numbers[slots, LAST], kind="stable")][:most]
        return [
            SilentEntity(
                self._names[slot] or "",
                int(self._last[slot, 1]),
                longest_usual(self._numbers[slot], self._largest[slot]) / 1000.0,
            )
            for slot in slots.tolist()
        ]

    @property
    def limit(self) -> float:
        """The seconds after which a silence of the partition is too long; infinite if unknown."""
        return longest_usual(self._numbers[PARTITION], self._largest[PARTITION]) / 1000.0

    def take(
        self, places: IntArray, moments: IntArray, slots: IntArray, fresh: Mask, keys: Sequence[Key]
    ) -> list[Silence]:
        """Follow the next rows, and return what they show.

        ``places`` (m, 3) are their numbers, offsets and time stamps; negative ones are none.
        ``moments`` (m + 1, 2) are what the partition's `Clock` says before and after each.
        ``slots`` (m,) are those of their entities ``keys``, ``fresh`` (m,) says which are new
        there. ``keys`` is empty without entities.
        """
        own = own_slots(slots, keys)  # records without an entity share no time
        self.reserve(doubled(len(self._names), int(own.max(initial=0)) + 1))
        self._names += (len(self._deadlines) - len(self._names)) * [None]
        # Silences may be looked for only since an entity was known.
        unnamed = (fresh | (self._numbers[own, LAST] < 0.0)) & (own != PARTITION)
        silences, found, before = [], np.empty((2, 2)), np.empty((2, 2), np.int64)
        start = 0
        while start < len(own):
            row = follow(
                start, own, fresh, places, moments, self._partition,
                self._numbers, self._largest, self._deadlines, self._last, found, before,
            )  # fmt: skip
            for at in (start + np.flatnonzero(unnamed[start : row + 1])).tolist():
                self._names[own[at]] = entity_name(keys[at])
            if row < len(own):
                silences += self._ended(row, own[row], found, before) + self._begun(row)
            start = row + 1
        return silences

    def _ended(self, row: int, slot: int, found: FloatArray, before: IntArray) -> list[Silence]:
        """Return the silences that end with a row: the partition's, and that of its entity."""
        return [
            _silence(row, ENDED, self._names[own], before[at], found[at])
            for at, own in enumerate((PARTITION, slot))
            if found[at, 0] > 0.0
        ]

    def _begun(self, row: int) -> list[Silence]:
        """Return the silences that have become too long, those of the earliest deadlines first."""
        now = self._partition[NOW]
        late = np.flatnonzero(self._deadlines < now)
        late = late[np.argsort(self._deadlines[late], kind="stable")]
        last = self._numbers[late, LAST]
        lengths = np.column_stack([now - last, self._deadlines[late] - last])
        self._deadlines[late] = np.inf
        self._partition[N_SILENT] += len(late)
        return [
            _silence(row, BEGAN, self._names[slot], self._last[slot], lengths[i])
            for i, slot in enumerate(late.tolist())
        ]

    def state(self, slots: int | None = None) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        n = int(self._partition[SLOTS])
        return super().state(n) | {"silence_names": packed_names(self._names[:n])}

    def restore(self, arrays: Arrays, entities: int) -> None:
        """Restore a state of so many entities at most; StateError if it cannot be one."""
        self.read_state(arrays, slots=range(1, entities + 2))
        n, largest = len(self._numbers), self._largest
        self._names = read_names(arrays, "silence_names", n)
        expect(self._partition[SLOTS] == n, "as many entities as have gaps")
        known = np.minimum(self._numbers[:, [NEW, OLD]], LARGEST)
        expect((np.diff(largest) <= 0).all(), "the largest gaps of each entity in order")
        are_all = np.count_nonzero(largest > 0, axis=2) == known
        expect(are_all.all(), "as many of the largest gaps as there are")
        months = self._numbers[:, MONTH:].reshape(n, 2, AGAIN)
        in_order = (np.diff(months) <= 0).all() and (months >= 0).all()
        expect(in_order, "the longest gaps of each month in order")


def _silence(
    row: int, state: str, name: str | None, last: IntArray, lengths: FloatArray
) -> Silence:
    """Return a silence; ``lengths`` are its own and its limit in milliseconds."""
    seconds, limit = (lengths / 1000.0).tolist()
    return Silence(row, state, name, int(last[0]), int(last[1]), seconds, limit)
