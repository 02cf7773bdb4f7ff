"""Which entities are new, and which are unusual as a whole: among all entities, not among records.

An entity is as unusual as the largest of its deviations from the others (`profiles`), each divided
by what nine entities in ten stay below: so a field in which entities differ wildly by nature does
not decide. The logarithms of these are about Gaussian over entities; a p-value is the tail of
Student's t with their median and the spread above it, by quantiles that a few broken entities do
not move. Few entities leave it few degrees of freedom, so that hardly any is unusual.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np
from scipy.special import ndtri, stdtr

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray
from faust_oslrau.learner.keys import LONGEST_NAME, Key, entity_name
from faust_oslrau.learner.scoring.entity_events import (
    KINDS,
    LEVEL,
    NEW,
    SPREAD,
    UNUSUAL,
    USUAL,
    Aspect,
    EntityEvent,
)
from faust_oslrau.learner.state_schema import Entry, counts, expect, flags, read
from faust_oslrau.learner.stored import SLOTS, Places, Stored, doubled

from .population import YOUNG
from .roster import Newcomer, packed_keys, unpacked

EVENTS = (NEW, UNUSUAL)
"""What may be watched for. Entities that were unusual and are usual again belong to the latter."""

EVERY, LATEST = 1024, 128
"""After so many records, the entities of the latest ones are judged. Judging all of them would take
too long."""

SHARE = 0.9
"""Share of the entities whose deviations are usual ones."""

LEAST_SPREAD = 0.2
"""Least deviation of the logarithms: entities that hardly differ are not unusual for that."""

QUANTILES = np.array([0.75, 0.9])
"""Shares of the entities by which the spread of the logarithms is estimated, as in a Gaussian: the
larger spread counts. Below the median, what is usual has a shape of its own."""

EFFICIENCY = 0.4
"""Share of the entities that would tell as much about the spread by a standard deviation."""

BACK = 10.0
"""Factor of the p-value from which on an unusual entity is usual again, so that it does not go back
and forth."""

LISTED, LEAST_LISTED = 16, 0.5
"""Aspects of an event at the most, and the share of the largest deviation from which on one is
listed."""


class Watch(Stored):
    """Events of new entities, and of those that become unusual or usual among all.

    No score depends on it. What is usual changes in ``compare`` alone.

    Parameters
    ----------
    events
        Some of `EVENTS`; with none of them nothing is watched.

    Attributes
    ----------
    found
        Events since the last call of ``take``, in the order of the rows.
    """

    schema: ClassVar = {
        "_unusual": flags(SLOTS),
        "_usual": Entry(("aspects",), 1.0),
        "_others": Entry((3,)),
    }
    prefix = "watch_"

    def __init__(self, events: Sequence[str]) -> None:
        self.events = tuple(name for name in EVENTS if name in events)
        self.found: list[EntityEvent] = []
        self._unusual = np.zeros(0, np.bool_)
        self._latest: list[tuple[int, Key]] = []  # slots and names of the last rows
        self._usual = np.empty(0)
        self._others = np.zeros(3)
        self._last_row = 0

    def take(
        self,
        slots: IntArray,
        keys: Sequence[Key],
        newcomers: Sequence[Newcomer],
        back: Collection[int],
        n: int,
    ) -> None:
        """Take note of the next rows (m,), after ``n`` rows at the last boundary.

        ``newcomers`` are the rows whose entities are new to their slots; ``back`` are those of
        entities that came back.
        """
        self.found, self._last_row = [], len(slots) - 1
        self.reserve(doubled(len(self._unusual), int(slots.max(initial=-1)) + 1))
        for newcomer in newcomers:
            self._unusual[slots[newcomer.row]] = False
        if NEW in self.events and n >= YOUNG:
            self.found += [
                EntityEvent(row, NEW, entity_name(keys[row]), np.nan, ())
                for row, key, _ in newcomers
                if key is not None and row not in back
            ]
        if UNUSUAL in self.events:
            some = zip(slots[-LATEST:].tolist(), keys[-LATEST:], strict=True)
            latest = [(slot, None if key is None else key[:LONGEST_NAME]) for slot, key in some]
            self._latest = (self._latest + latest)[-LATEST:]

    def is_due(self, before: int, n: int) -> bool:
        """Say whether entities are to be judged at a boundary after ``n`` rows."""
        return UNUSUAL in self.events and n >= YOUNG and n // EVERY > before // EVERY

    @property
    def latest(self) -> dict[int, Key]:
        """Names of the entities to judge, by their slots."""
        return {slot: name for slot, name in dict(self._latest).items() if name is not None}

    def compare(self, deviations: FloatArray) -> None:
        """Learn what is usual from the deviations (k, c) of some entities."""
        if len(deviations) == 0:
            return
        size = np.abs(deviations)
        self._usual = np.maximum(np.quantile(size, SHARE, axis=0), 1.0)
        logarithm = _logarithm(size / self._usual)
        centre = np.median(logarithm)
        above = np.quantile(logarithm, QUANTILES) - centre
        spread = max(*(above / ndtri(QUANTILES)), LEAST_SPREAD)
        self._others = np.array([centre, spread, len(deviations)])

    def p_value(self, deviations: FloatArray) -> FloatArray:
        """Return the share (k,) of entities expected to be as unusual, from deviations (k, c).

        NaN while too few entities are known.
        """
        if len(self._usual) == 0:
            return np.full(len(deviations), np.nan)
        centre, spread, n = self._others
        distance = (_logarithm(np.abs(deviations) / self._usual) - centre) / spread
        return np.asarray(stdtr(EFFICIENCY * (n - 1.0), -distance))

    def judge(self, slots: IntArray, deviations: FloatArray, largest: float) -> list[int]:
        """Return which of the entities (k,) became unusual or usual, and remember it.

        They are unusual up to the ``largest`` p-value.
        """
        p_value, before = self.p_value(deviations), self._unusual[slots]
        now = p_value <= np.where(before, BACK * largest, largest)
        self._unusual[slots] = now
        return np.flatnonzero(now != before).tolist()

    def tell(
        self, slot: int, deviations: FloatArray, values: FloatArray, usual: FloatArray
    ) -> None:
        """Add the event of an entity that became unusual or usual, by its deviations (c,).

        ``values`` and ``usual`` (2, d) are levels and standard deviations of the entity and of the
        one in the middle.
        """
        (p_value,) = self.p_value(deviations[None]).tolist()
        is_unusual = bool(self._unusual[slot])
        aspects = self.aspects(deviations, values, usual) if is_unusual else ()
        state, name = UNUSUAL if is_unusual else USUAL, entity_name(self.latest[slot])
        self.found.append(EntityEvent(self._last_row, state, name, p_value, aspects))

    def aspects(
        self, deviations: FloatArray, values: FloatArray, usual: FloatArray
    ) -> tuple[Aspect, ...]:
        """Return in which ways an entity differs, as ``tell`` has them."""
        size, d = np.abs(deviations), values.shape[1]
        if len(self._usual) > 0:
            size = size / self._usual
        order = [at for at in np.argsort(-size, kind="stable").tolist()[:LISTED]
                 if size[at] >= LEAST_LISTED * size.max()]  # fmt: skip
        found = []
        for at in order:
            row, column = divmod(at, d)
            if row == len(values):
                found.append(Aspect(KINDS, None, np.nan, np.nan, float(deviations[at])))
            else:
                value, middle = float(values[row, column]), float(usual[row, column])
                name = (LEVEL, SPREAD)[row]
                found.append(Aspect(name, column, value, middle, float(deviations[at])))
        return tuple(found)

    def add_fields(self, places: Places) -> None:
        """Make room for more fields: their levels and spreads differ as little as is usual."""
        both, kinds = self._usual[:-1].reshape(2, -1), self._usual[-1:]
        self._usual = np.append(places.widened(both, 1, 1.0), kinds)

    def state(self, slots: int | None = None) -> Arrays:
        """Return all that ``restore`` needs, of so many entities, as arrays."""
        text, lengths = packed_keys([name for _, name in self._latest])
        self.reserve(slots or 0)  # some may have had no record yet
        return super().state(slots) | {
            "watch_slots": np.array([slot for slot, _ in self._latest], np.int64),
            "watch_names": text,
            "watch_name_lengths": lengths,
        }

    def restore(self, arrays: Arrays, d: int, k: int) -> None:
        """Restore a state of ``k`` entities with ``d`` fields; StateError if it cannot be one."""
        names = unpacked(arrays, "watch_name", LONGEST_NAME)
        self.read_state(arrays, slots=k, aspects=(0, 2 * d + 1))
        (slots,) = read(arrays, {"slots": counts("n")}, self.prefix, n=len(names))
        is_spread = len(self._usual) == 0 or (self._others[1:] >= LEAST_SPREAD).all()
        expect(is_spread, "how much the deviations of entities differ")
        expect(len(names) <= LATEST and (slots < k).all(), "the latest entities")
        self._latest = list(zip(slots.tolist(), names, strict=True))


def _logarithm(size: FloatArray) -> FloatArray:
    """Return the logarithm (k,) of the largest of each entity's deviations (k, c)."""
    return np.asarray(np.log(np.maximum(size.max(axis=1), 1e-3)))
