"""Finds changes of what records hold: fields that come, go, or get another type or unit.

One record in `EVERY` is looked at. `SAMPLES` of them are a window, and windows are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import quantiles

import msgspec

from .documents import parsed
from .field_changes import FieldChange, FieldState
from .fields import contents, is_beyond

EVERY = 40
SAMPLES = 25
_HALF = SAMPLES // 2

# Fields that are remembered; the names of some may be values.
_MOST_FIELDS = 1024
_LONGEST_NAME = 256
# Numbers whose level and spread grow by about one factor, at least so large, have another unit.
_LEAST_FACTOR = 8.0
_ALIKE = 2.0
_FEWEST_NUMBERS = 10

_KINDS = {float: "number", int: "number", bool: "number", str: "text", list: "list"}
_UNSEEN = ""

Quartiles = tuple[float, float, float]


class FieldWatch(msgspec.Struct):
    """What the fields of one partition's records hold, window by window.

    It sees all records, invalid ones too, in the order of the log, and its changes do not depend on
    how they are split into calls of `take`. Its attributes are its state.

    Attributes
    ----------
    seen, sampled
        Records so far, and how many of them were looked at.
    known
        What each field held in half of a window; empty for one that only some of the first had.
    absent, longest
        Windows since a chosen field vanished, and the longest absence it has returned from.
    quartiles
        Those of a chosen field's numbers in the last two windows.
    counts, numbers
        What the fields of this window hold, how often, and the numbers of chosen ones.
    """

    seen: int = 0
    sampled: int = 0
    known: dict[str, str] = {}
    absent: dict[str, int] = {}
    longest: dict[str, int] = {}
    quartiles: dict[str, list[Quartiles]] = {}
    counts: dict[str, dict[str, int]] = {}
    numbers: dict[str, list[float]] = {}

    def take(
        self, values: Sequence[bytes | None], chosen: Sequence[str]
    ) -> list[tuple[int, FieldChange]]:
        """Look at the next values; return the changes of fields, each with the value's position.

        Only fields that are `chosen` can vanish or change, and only others appear as new ones.
        """
        changes: list[tuple[int, FieldChange]] = []
        positions = range(-self.seen % EVERY, len(values), EVERY)
        measured = frozenset(chosen if positions else ())
        for position in positions:
            self._add(values[position], measured)
            self.sampled += 1
            if self.sampled % SAMPLES == 0:
                changes += ((position, change) for change in self._compare(chosen))
                self.counts, self.numbers = {}, {}
        self.seen += len(values)
        return changes

    def _add(self, value: bytes | None, measured: frozenset[str]) -> None:
        counts = self.counts
        document = parsed(value)
        for field, content in contents(document) if isinstance(document, dict) else ():
            kind, of = _KINDS.get(type(content)), counts.get(field)
            if kind is None:
                continue
            if of is None:
                if len(counts) >= _MOST_FIELDS or len(field) > _LONGEST_NAME:
                    continue
                of = counts[field] = {}
            of[kind] = of.get(kind, 0) + 1
            if field in measured and kind == "number" and not is_beyond(content):
                self.numbers.setdefault(field, []).append(float(content))

    def _compare(self, chosen: Sequence[str]) -> Iterator[FieldChange]:
        """Compare the window with those before it."""
        is_first = self.sampled == SAMPLES
        for field, counts in sorted(self.counts.items()):
            kind = max(counts, key=counts.__getitem__)
            if counts[kind] < _HALF:
                if is_first:
                    self.known[field] = _UNSEEN
                continue
            before = self.known.get(field)
            if before is None and len(self.known) >= _MOST_FIELDS:
                continue
            self.known[field] = kind
            if before is None and not is_first and field not in chosen:
                yield FieldChange(FieldState.APPEARED, field)
            elif before and before != kind and field in chosen:
                yield FieldChange(FieldState.TYPE, field, before=before, now=kind)
        for field in chosen:
            yield from self._presence(field)
            yield from self._unit(field)

    def _presence(self, field: str) -> Iterator[FieldChange]:
        """Tell whether a chosen field vanished, for longer than before, or returned."""
        longest = self.longest.get(field, 0)
        if field not in self.counts:
            if self.known.get(field):
                self.absent[field] = self.absent.get(field, 0) + 1
                if self.absent[field] == 2 * longest + 1:
                    yield FieldChange(FieldState.VANISHED, field)
        elif (absent := self.absent.pop(field, 0)) > 0:
            self.longest[field] = max(longest, absent)
            if absent > 2 * longest:
                yield FieldChange(FieldState.APPEARED, field)

    def _unit(self, field: str) -> Iterator[FieldChange]:
        """Tell whether the numbers of a field look like the earlier ones in another unit.

        The window in which they change holds both, so that the one before it is asked, too.
        """
        numbers = self.numbers.get(field, [])
        if len(numbers) < _FEWEST_NUMBERS:
            return
        low, middle, high = quantiles(numbers)
        now, before = (low, middle, high), self.quartiles.get(field, [])
        factors = [factor for old in before if (factor := common_factor(old, now))]
        if factors:
            self.quartiles[field] = [now]
            yield FieldChange(FieldState.UNIT, field, factor=float(f"{factors[0]:.3g}"))
        else:
            self.quartiles[field] = [*before, now][-2:]


def common_factor(before: Quartiles, now: Quartiles) -> float | None:
    """Return the factor by which level and spread grew or shrank; None without a large one."""
    level, spread = before[1], before[2] - before[0]
    if level == 0 or spread == 0:
        return None
    factor, spread_factor = now[1] / level, (now[2] - now[0]) / spread
    is_large = factor >= _LEAST_FACTOR or 0 < factor <= 1 / _LEAST_FACTOR
    is_common = factor <= _ALIKE * spread_factor and spread_factor <= _ALIKE * factor
    return factor if is_large and is_common and math.isfinite(factor) else None
