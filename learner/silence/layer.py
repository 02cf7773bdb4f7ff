"""Silences: records that are expected and do not come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.keys import Key, entity_name
from faust_oslrau.learner.scoring.block import BEGAN, ENDED, Silence, SilentEntity
from faust_oslrau.learner.state_schema import Entry, counts, expect
from faust_oslrau.learner.stored import SLOTS, Stored, doubled

from .following import AGAIN, FEWEST, LARGEST, MEMORY, Gaps, follow, longest_usual
from .subjects import PARTITION, Names, own_slots, packed_names, read_names


class Silences(Stored):
    """Finds silences that are longer than the gaps between the records of an entity so far.

    And those of the partition. All follows from the records' time stamps, one record after the
    other. Each entity has a slot, which its next record after it gave way begins anew.
    """

    schema: ClassVar = {
        "_times": Entry((SLOTS,), -1.0, new=-1.0),
        "_counts": counts(SLOTS, 2, most=MEMORY),
        "_largest": Entry((SLOTS, 2, LARGEST), 0.0, dtype="<f4"),
        "_since": Entry((SLOTS,), 0.0),
        "_pauses": Entry((SLOTS, 2, AGAIN), 0.0, dtype="<f4"),
        "_deadlines": Entry((SLOTS,), 0.0, np.inf, new=np.inf),
        "_last": Entry((SLOTS, 2), dtype="<i8", new=-1),
    }
    prefix = "silence_"

    def __init__(self) -> None:
        self._times, self._since, self._deadlines = np.empty((3, 0))
        self._counts, self._last = np.empty((2, 0, 2), np.int64)
        self._largest = np.empty((0, 2, LARGEST), np.float32)
        self._pauses = np.empty((0, 2, AGAIN), np.float32)
        self._names: Names = [None]
        self.reserve(1)
        self._times[PARTITION] = 0.0

    @property
    def n_silent(self) -> int:
        """The number of entities that are silent after the last row."""
        return len(self._silent_slots())

    def silent(self, most: int) -> list[SilentEntity]:
        """Return up to ``most`` entities that are silent after the last row, the longest first."""
        slots = self._silent_slots()
        slots = slots[np.argsort(self._times[slots], kind="stable")][:most]
        return [
            SilentEntity(
                self._names[slot] or "",
                int(self._last[slot, 1]),
                longest_usual(slot, self._gaps) / 1000.0,
            )
            for slot in slots.tolist()
        ]

    def _silent_slots(self) -> IntArray:
        known = self._counts[:, 0] + self._counts[:, 1]  # a sum along two is ten times as slow
        is_silent = (self._deadlines == np.inf) & (known >= FEWEST)
        is_silent[PARTITION] = False
        return np.flatnonzero(is_silent)

    @property
    def _gaps(self) -> Gaps:
        return Gaps(
            self._times,
            self._counts,
            self._largest,
            self._since,
            self._pauses,
            self._deadlines,
        )

    @property
    def limit(self) -> float:
        """The seconds after which a silence of the partition is too long; infinite if unknown."""
        return longest_usual(PARTITION, self._gaps) / 1000.0

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
        unnamed = (fresh | (self._times[own] < 0.0)) & (own != PARTITION)
        silences, found, before = [], np.empty((2, 2)), np.empty((2, 2), np.int64)
        start = 0
        while start < len(own):
            row = follow(
                start, own, fresh, places, moments, self._gaps, self._last, found, before
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
        now = self._times[PARTITION]
        late = np.flatnonzero(self._deadlines < now)
        late = late[late != PARTITION]
        late = late[np.argsort(self._deadlines[late], kind="stable")]
        last = self._times[late]
        lengths = np.column_stack([now - last, self._deadlines[late] - last])
        self._deadlines[late] = np.inf
        return [
            _silence(row, BEGAN, self._names[slot], self._last[slot], lengths[i])
            for i, slot in enumerate(late.tolist())
        ]

    def state(self, slots: int | None = None) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        n = int(np.flatnonzero(self._times >= 0.0)[-1]) + 1
        return super().state(n) | {"silence_names": packed_names(self._names[:n])}

    def restore(self, arrays: Arrays, entities: int) -> None:
        """Restore a state of so many entities at most; StateError if it cannot be one."""
        self.read_state(arrays, slots=range(1, entities + 2))
        self._names = read_names(arrays, "silence_names", len(self._times))
        expect((self._times[[PARTITION, -1]] >= 0.0).all(), "a time of the partition and entities")
        is_bound = self._deadlines[PARTITION] <= self._deadlines.min()
        expect(is_bound, "no deadline before the earliest one")
        for longest in (self._largest, self._pauses):
            expect((np.diff(longest) <= 0.0).all(), "the longest gaps of each entity in order")
        known = np.count_nonzero(self._largest > 0.0, axis=2)
        are_all = known == np.minimum(self._counts, LARGEST)
        expect(are_all.all(), "as many of the largest gaps as there are")


def _silence(
    row: int, state: str, name: str | None, last: IntArray, lengths: FloatArray
) -> Silence:
    """Return a silence; ``lengths`` are its own and its limit in milliseconds."""
    seconds, limit = (lengths / 1000.0).tolist()
    return Silence(row, state, name, int(last[0]), int(last[1]), seconds, limit)
