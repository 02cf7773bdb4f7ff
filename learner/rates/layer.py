"""Rates: how many records the partition and each of its entities, or groups, bring."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from faust_oslrau.learner.arrays import Arrays, IntArray, Mask
from faust_oslrau.learner.errors import InvalidParameterError
from faust_oslrau.learner.keys import Key, entity_name
from faust_oslrau.learner.scoring.block import BAND, BEGAN, ENDED, ChangedRate, RateChange
from faust_oslrau.learner.seasons.calendar import Calendar, weekday
from faust_oslrau.learner.silence.subjects import PARTITION, packed_names, read_names
from faust_oslrau.learner.state_schema import Entry, counts, expect, flags, read

from .evidence import Evidence, Found
from .filters import Filters, Predicted

MOST_ENTITIES = 1000
"""Entities or groups that are followed at a time: the time of a window grows with their number."""

LEAST_SECONDS, MOST_SECONDS = 1.0, 3600.0
"""Lengths of windows."""

UNSEEN = 1
"""Subject of groups: one that no record belonged to so far, as which new ones begin."""

_NO_WINDOW = -1

_RATES = {
    "window": Entry((1,), _NO_WINDOW, dtype="<i8"),
    "is_whole": flags(1),
    "records": counts("n"),
    "is_new": flags("n"),
    "silent": counts("n"),
}


class Rates:
    """Finds windows of record time with far more or far fewer records than usual.

    Of the partition, and of each of up to ``MOST_ENTITIES`` entities. If there are more, one takes
    the place of the one without records for longest, of those whose loss is usual by now.

    A window is looked at when the next one begins. It counts if the partition has records in it,
    before it and after it: without, the partition was silent, which is for `Silences` to tell.
    Windows of an entity count from the first whole one on.

    With the name of a field, ``by``, records are counted for each of its values, the groups, in
    place of entities. Before its first record, a group had windows without any: a new status is a
    surge of it, while an entity that is new has no past. They are not known of groups that come
    when there was no place for one.
    """

    def __init__(self, seconds: float, zone: str, by: str | None = None) -> None:
        if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
            raise InvalidParameterError(
                f"rates = {seconds:g} s: expected {LEAST_SECONDS:g} s to {MOST_SECONDS:g} s"
            )
        self.seconds, self.zone, self.by = seconds, zone, by
        self._calendar = Calendar(zone)
        self._window, self._is_whole = _NO_WINDOW, False
        self._keys: list[Key] = [None] if by is None else [None, None]
        n = self._n_unnamed = len(self._keys)
        self._records, self._is_new, self._silent = n * [0], n * [False], n * [0]
        self._slots: dict[bytes, int] = {}
        self._free: list[int] = []
        self._filters, self._evidence = Filters(seconds), Evidence(seconds)
        self._reserve()

    def take(self, now: IntArray, fresh: Mask, keys: Sequence[Key]) -> list[RateChange]:
        """Count the next rows, and return the changes that begin or end with a window before them.

        ``now`` (m,) is the partition's time with each of them in milliseconds, -1 for none: records
        that come late count when they come. ``keys`` (m,) are their entities or groups, none if
        empty; nothing is known any more of those that are ``fresh`` (m,).
        """
        windows = np.where(now < 0, _NO_WINDOW, now // self._length)
        begins = np.diff(windows, prepend=self._window) != 0
        pieces = [0, *np.flatnonzero(begins).tolist(), len(now)]
        changes: list[RateChange] = []
        for start, stop in pairwise(pieces):
            if start == stop:
                continue
            if begins[start]:
                changes += self._end_window(start, int(windows[start]))
            self._records[PARTITION] += stop - start
            self._count(fresh[start:stop], keys[start:stop])
        return changes

    def changed(self, most: int) -> list[ChangedRate]:
        """Return up to ``most`` changes that last, those that began first."""
        slots = np.flatnonzero(self._evidence.changed)
        slots = slots[np.argsort(-self._evidence.changed[slots], kind="stable")][:most]
        return [
            ChangedRate(*self._subject(slot), *self._evidence.change(slot, self._length))
            for slot in slots.tolist()
        ]

    def _subject(self, slot: int) -> tuple[str | None, str | None]:
        """Return the name of an entity or group and the field of groups; None for the partition."""
        if slot == PARTITION:
            return None, None
        return entity_name(self._keys[slot]), self.by

    @property
    def _length(self) -> int:
        return round(1000.0 * self.seconds)

    def _reserve(self) -> None:
        self._filters.reserve(len(self._keys))
        self._evidence.reserve(len(self._keys))

    def _count(self, fresh: Mask, keys: Sequence[Key]) -> None:
        for key, is_fresh in zip(keys, fresh.tolist(), strict=False):  # without entities, no keys
            if key is None:
                continue
            slot = self._slots.get(key, PARTITION)
            if slot == PARTITION or is_fresh:
                slot = slot or self._free_slot()
                if slot == PARTITION:
                    if self.by is not None:
                        self._is_new[UNSEEN] = True  # others that come may have had records before
                    continue
                self._begin(slot, key)
            self._records[slot] += 1

    def _free_slot(self) -> int:
        """Return a slot for another entity, `PARTITION` if none is free."""
        if len(self._keys) < self._n_unnamed + MOST_ENTITIES:
            self._records.append(0)
            self._is_new.append(True)
            self._silent.append(0)
            self._keys.append(None)
            return len(self._keys) - 1
        while self._free:
            slot = self._free.pop()
            if not self._records[slot]:  # else it is back
                return slot
        return PARTITION

    def _begin(self, slot: int, key: bytes) -> None:
        """Begin anew with an entity in a slot."""
        before = self._keys[slot]
        if before is not None:
            del self._slots[before]
        self._keys[slot], self._slots[key] = key, slot
        self._records[slot], self._is_new[slot], self._silent[slot] = 0, True, 0

    def _end_window(self, row: int, following: int) -> list[RateChange]:
        """Look at the window that ends with the one before a row, and begin the ``following``."""
        self._reserve()
        self._begin_anew()
        is_next = self._window != _NO_WINDOW and following == self._window + 1
        changes = self._look_at(row) if is_next and self._is_whole else []
        self._window, self._is_whole = following, is_next
        self._silent = [
            0 if records else silent + 1
            for records, silent in zip(self._records, self._silent, strict=True)
        ]
        n = len(self._keys)
        self._records, self._is_new = n * [0], n * [False]
        self._free = self._free_slots()
        return changes

    def _begin_anew(self) -> None:
        """Forget what is known of slots with a new subject; a group is what an unseen one was."""
        for slot in np.flatnonzero(self._is_new).tolist():
            self._filters.clear(slot)
            self._evidence.clear(slot)
            if slot >= self._n_unnamed and self.by is not None:
                self._filters.copy(UNSEEN, slot)
                self._is_new[slot] = False

    def _free_slots(self) -> list[int]:
        """Return the slots that others may take, the first one last."""
        silent = np.array(self._silent)
        is_free = (silent >= self._evidence.longest) & (self._evidence.changed == 0)
        slots = np.flatnonzero(is_free[self._n_unnamed :]) + self._n_unnamed
        found: list[int] = slots[np.argsort(-silent[slots], kind="stable")][::-1].tolist()
        return found

    def _look_at(self, row: int) -> list[RateChange]:
        records, which = np.array(self._records, np.float64), ~np.array(self._is_new)
        hour = self._hour()
        predicted = self._filters.predict(hour)
        judged = which & self._filters.has_level
        if self.by is not None:
            judged[UNSEEN] = False
        found = self._evidence.add(records, predicted, self._window, judged)
        self._filters.learn(records, predicted, hour, which & (self._evidence.changed == 0))
        for each in found:
            if each.stays:
                self._filters.forget_level(each.subject)
        return [self._change(row, each, predicted) for each in found]

    def _hour(self) -> float:
        """Return the hour of the week in the middle of the window."""
        middle = np.array([self._window * self._length + self._length // 2])
        date, hour = self._calendar.local(middle)
        return float(24 * weekday(date)[0] + hour[0])

    def _change(self, row: int, found: Found, predicted: Predicted) -> RateChange:
        slot = found.subject
        return RateChange(
            row,
            BEGAN if found.begins else ENDED,
            *self._subject(slot),
            max(found.since, 0) * self._length,
            self.seconds,
            self._records[slot],
            float(predicted.expected[slot]),
            *(predicted.quantile(slot, level) for level in BAND),
        )

    def state(self) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        self._reserve()
        names = [
            None if key is None else key.decode(errors="surrogateescape") for key in self._keys
        ]
        return {
            **self._filters.state(),
            **self._evidence.state(),
            "rate_window": np.array([self._window]),
            "rate_is_whole": np.array([self._is_whole], np.uint8),
            "rate_records": np.array(self._records),
            "rate_is_new": np.array(self._is_new, np.uint8),
            "rate_silent": np.array(self._silent),
            "rate_names": packed_names(names),
        }

    def restore(self, arrays: Arrays) -> None:
        """Restore a state; StateError if it cannot be one."""
        self._window, self._is_whole, records, is_new, silent = read(
            arrays, _RATES, "rate_", n=range(self._n_unnamed, self._n_unnamed + MOST_ENTITIES + 1)
        )
        n = len(records)
        self._keys = [
            None if name is None else name.encode(errors="surrogateescape")
            for name in read_names(arrays, "rate_names", n)
        ]
        self._slots = {key: slot for slot, key in enumerate(self._keys) if key is not None}
        unnamed = [key is None for key in self._keys[: self._n_unnamed]]
        is_named = all(unnamed) and len(self._slots) == n - len(unnamed)
        expect(is_named, "entities with names, each once")
        self._records, self._is_new, self._silent = (
            each.tolist() for each in (records, is_new, silent)
        )
        self._filters.read_state(arrays, slots=n)
        self._evidence.read_state(arrays, slots=n)
        self._free = self._free_slots()
