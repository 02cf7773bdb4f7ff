"""Rates: how many records the partition and each of its entities, or groups, bring."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from faust_oslrau.learner.arrays import Arrays, IntArray, Mask
from faust_oslrau.learner.errors import InvalidParameterError, StateError
from faust_oslrau.learner.keys import Key, entity_name
from faust_oslrau.learner.scoring.block import BEGAN, ENDED, RateChange
from faust_oslrau.learner.seasons.calendar import Calendar, weekday
from faust_oslrau.learner.silence.clock import N_ROWS, TIME, check_clock, latest, new_clock, tick
from faust_oslrau.learner.silence.subjects import (
    PARTITION,
    Names,
    own_slots,
    packed_names,
    read_names,
)
from faust_oslrau.learner.state_schema import Entry, counts, flags, read
from faust_oslrau.learner.vector.compiler import Array, kernel

from .evidence import Evidence, Found
from .filters import Filters, Predicted

MOST_ENTITIES = 1000
"""Entities or groups that are followed, the first ones: the time of a window grows with their
number."""

LEAST_SECONDS, MOST_SECONDS = 1.0, 3600.0
"""Lengths of windows."""

LOW, HIGH = 0.01, 0.99
"""Quantiles between which a count is usual."""

_NO_WINDOW = -1

_RATES = {
    "clock": Entry((N_ROWS, 2), -1, dtype="<i8"),
    "window": Entry((1,), _NO_WINDOW, dtype="<i8"),
    "is_whole": flags(1),
    "records": counts("n"),
    "is_new": flags("n"),
    "names": Entry(("b",), dtype="|u1"),
}


@kernel
def fill_windows(places: Array, clock: Array, length: int, windows: Array) -> None:
    """Fill ``windows`` (m,) with numbers of windows, -1 as long as there is no time.

    ``places`` (m, 3) are numbers, offsets and time stamps of records, ``length`` the milliseconds
    of a window. Records that come late count when they come.
    """
    for row in range(len(windows)):
        tick(clock, places[row, 1], places[row, 2])
        now = clock[latest(clock), TIME]
        windows[row] = -1 if now < 0 else now // length


class Rates:
    """Finds windows of record time with far more or far fewer records than usual.

    Of the partition, and of each of up to ``MOST_ENTITIES`` entities. A window is looked at when
    the next one begins. It counts if the partition has records in it, before it and after it:
    without, the partition was silent, which is for `Silences` to tell. Windows of an entity count
    from the first whole one on.

    With the name of a field, ``by``, records are counted for each of its values, the groups, in
    place of entities.
    """

    def __init__(self, seconds: float, zone: str, by: str | None = None) -> None:
        if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
            raise InvalidParameterError(
                f"rates = {seconds:g} s: expected {LEAST_SECONDS:g} s to {MOST_SECONDS:g} s"
            )
        self.seconds, self.zone, self.by = seconds, zone, by
        self._calendar = Calendar(zone)
        self._clock = new_clock()
        self._window, self._is_whole = _NO_WINDOW, False
        self._records, self._is_new = np.zeros(1, np.int64), np.zeros(1, np.bool_)
        self._names: Names = [None]
        self._group_slots: dict[str, int] = {}
        self._is_known = np.ones(1, np.bool_)
        self._filters, self._evidence = Filters(seconds), Evidence(seconds)
        self._reserve(1)

    def take(
        self, places: IntArray, slots: IntArray, fresh: Mask, keys: Sequence[Key]
    ) -> list[RateChange]:
        """Count the next rows, and return the changes that begin or end with a window before them.

        ``places`` (m, 3) are their numbers, offsets and time stamps; negative ones are none.
        ``slots`` (m,) are those of their entities ``keys``, ``fresh`` (m,) says which are new
        there. ``keys`` is empty without entities.
        """
        own = own_slots(slots, keys)
        own[own > MOST_ENTITIES] = PARTITION
        windows = np.empty(len(places), np.int64)
        fill_windows(places, self._clock, self._length, windows)
        self._reserve(int(own.max(initial=0)) + 1)
        begins = np.diff(windows, prepend=self._window) != 0
        is_new = (own != PARTITION) & fresh
        cuts = np.flatnonzero(begins | is_new | ~self._is_known[own])
        pieces = [0, *cuts.tolist(), len(own)]
        changes: list[RateChange] = []
        for start, stop in pairwise(pieces):
            if start == stop:
                continue
            if begins[start]:
                changes += self._end_window(start, int(windows[start]))
            if is_new[start] or not self._is_known[own[start]]:
                self._begin(int(own[start]), keys[start])
            self._count(own[start:stop])
        return changes

    def take_groups(self, places: IntArray, groups: Sequence[Key]) -> list[RateChange]:
        """Count the next rows as ``take``, with their groups (m,) in place of entities."""
        slots, fresh = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.bool_)
        for row, key in enumerate(groups):
            if key is None:
                continue
            name, known = entity_name(key), len(self._group_slots)
            slots[row] = self._group_slots.get(name, known)
            if slots[row] == known < MOST_ENTITIES:
                self._group_slots[name] = known
                fresh[row] = True
        return self.take(places, slots, fresh, groups)

    @property
    def _length(self) -> int:
        return round(1000.0 * self.seconds)

    def _reserve(self, n: int) -> None:
        """Make room for ``n`` slots, as many as there are."""
        more = n - len(self._names)
        if more > 0:
            self._records = np.append(self._records, np.zeros(more, np.int64))
            self._is_new = np.append(self._is_new, np.ones(more, np.bool_))
            self._is_known = np.append(self._is_known, np.zeros(more, np.bool_))
            self._names += more * [None]
        self._filters.reserve(len(self._names))
        self._evidence.reserve(len(self._names))

    def _begin(self, slot: int, key: Key) -> None:
        """Begin anew with another entity in a slot."""
        self._names[slot], self._is_known[slot] = entity_name(key), True
        self._records[slot], self._is_new[slot] = 0, True
        self._filters.begin(slot)
        self._evidence.begin(slot)

    def _count(self, own: IntArray) -> None:
        if self._window == _NO_WINDOW:
            return
        self._records += np.bincount(own[own != PARTITION], minlength=len(self._records))
        self._records[PARTITION] += len(own)

    def _end_window(self, row: int, following: int) -> list[RateChange]:
        """Look at the window that ends with the one before a row, and begin the ``following``."""
        is_next = self._window != _NO_WINDOW and following == self._window + 1
        changes = self._look_at(row) if is_next and self._is_whole else []
        self._window, self._is_whole = following, is_next
        self._records[:], self._is_new[:] = 0, False
        return changes

    def _look_at(self, row: int) -> list[RateChange]:
        records, which, hour = self._records.astype(np.float64), ~self._is_new, self._hour()
        predicted = self._filters.predict(hour)
        judged = which & self._filters.has_level
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
            self._names[slot],
            None if slot == PARTITION else self.by,
            max(found.since, 0) * self._length,
            self.seconds,
            int(self._records[slot]),
            float(predicted.expected[slot]),
            predicted.quantile(slot, LOW),
            predicted.quantile(slot, HIGH),
        )

    def state(self) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        return {
            **self._filters.state(),
            **self._evidence.state(),
            "rate_clock": self._clock,
            "rate_window": np.array([self._window]),
            "rate_is_whole": np.array([self._is_whole], np.uint8),
            "rate_records": self._records,
            "rate_is_new": self._is_new.astype(np.uint8),
            "rate_names": packed_names(self._names),
        }

    def restore(self, arrays: Arrays, entities: int) -> None:
        """Restore a state of so many entities at most; StateError if it cannot be one."""
        most = entities if self.by is None else MOST_ENTITIES
        clock, window, is_whole, records, is_new, text = read(
            arrays, _RATES, "rate_", n=range(1, most + 2)
        )
        n = len(records)
        names = read_names(text, n)
        check_clock(clock)
        self._clock, self._window, self._is_whole = clock, int(window[0]), bool(is_whole[0])
        self._records, self._is_new, self._names = records, is_new.astype(np.bool_), names
        self._is_known = np.array([name is not None for name in names])
        self._is_known[PARTITION] = True
        if self.by is not None:
            self._group_slots = {str(name): slot for slot, name in enumerate(names[1:])}
            if None in names[1:] or len(self._group_slots) < n - 1:
                raise StateError("state: expected groups with names, each once")
        self._filters.restore(arrays, n)
        self._evidence.restore(arrays, n)
