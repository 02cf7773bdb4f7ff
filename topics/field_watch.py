"""Finds changes of what records hold: fields that come, go, or get another type or unit.

Of `EVERY` records one is looked at. `SAMPLES` of them are a window, and windows are compared.
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
# Numbers whose level, spread and quartiles grow by about one factor, at least so large, are of
# another unit.
_LEAST_FACTOR = 8.0
_ALIKE = 2.0
_FEWEST_NUMBERS = 10
# Windows with which one is compared: one may hold both units, and spreads vary by chance.
_COMPARED = 3
# Earlier levels of a field that are remembered.
_MOST_LEVELS = 8
# Spreads numbers evenly over those below 2^32, any few that follow each other as well (Knuth).
_GOLDEN = 2_654_435_761

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
        Those of a chosen field's numbers in the last three windows.
    types, levels
        What a chosen field held before, and the medians of its numbers, each with its last window.
    pauses
        The most windows after which a field had one of them again.
    counts, numbers
        What the fields of this window hold, how often, and the numbers of chosen ones.
    """

    seen: int = 0
    sampled: int = 0
    known: dict[str, str] = {}
    absent: dict[str, int] = {}
    longest: dict[str, int] = {}
    quartiles: dict[str, list[Quartiles]] = {}
    types: dict[str, dict[str, int]] = {}
    levels: dict[str, list[tuple[float, int]]] = {}
    pauses: dict[str, int] = {}
    counts: dict[str, dict[str, int]] = {}
    numbers: dict[str, list[float]] = {}

    def take(
        self,
        values: Sequence[bytes | None],
        chosen: Sequence[str],
        categories: Sequence[str] = (),
    ) -> list[tuple[int, FieldChange]]:
        """Look at the next values; return the changes of fields, each with the value's position.

        Only fields that are `chosen` can vanish or change, and only others appear as new ones.
        Those of them that are `categories` have no unit, also where their values are numbers.
        """
        changes: list[tuple[int, FieldChange]] = []
        first, self.seen = self.seen, self.seen + len(values)
        positions = list(_sampled(first, self.seen))
        if not positions:  # as in most of the small blocks
            return changes
        measured = frozenset(chosen).difference(categories)
        for position in positions:
            self._add(values[position], measured)
            self.sampled += 1
            if self.sampled % SAMPLES == 0:
                changes += ((position, change) for change in self._compare(chosen))
                self.counts, self.numbers = {}, {}
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
                yield from self._type(field, before, kind)
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

    def _type(self, field: str, before: str, now: str) -> Iterator[FieldChange]:
        """Tell of another type, unless the field soon has again what it had."""
        seen = self.types.setdefault(field, {})
        seen[before] = self._window - 1
        if self._is_news(field, seen.get(now)):
            yield FieldChange(FieldState.TYPE, field, before=before, now=now)

    def _unit(self, field: str) -> Iterator[FieldChange]:
        """Tell whether the numbers of a field look like the earlier ones in another unit.

        The window in which they change holds both, so that those before it are asked, too.
        """
        numbers = self.numbers.get(field, [])
        if len(numbers) < _FEWEST_NUMBERS:
            return
        low, middle, high = quantiles(numbers)
        now, before = (low, middle, high), self.quartiles.get(field, [])
        found = [(factor, old) for old in before if (factor := common_factor(old, now))]
        if not found:
            self.quartiles[field] = [*before, now][-_COMPARED:]
            return
        self.quartiles[field] = [now]
        factor, old = found[0]
        if self._is_news(field, self._seen_level(field, old[1], middle)):
            yield FieldChange(FieldState.UNIT, field, factor=float(f"{factor:.3g}"))

    @property
    def _window(self) -> int:
        return self.sampled // SAMPLES

    def _seen_level(self, field: str, before: float, now: float) -> int | None:
        """Remember the level of a field, and return when it last had the one that it has now."""
        others = [of for of in self.levels.get(field, []) if not _is_same_level(of[0], before)]
        self.levels[field] = [*others, (before, self._window - 1)][-_MOST_LEVELS:]
        return max((at for level, at in others if _is_same_level(level, now)), default=None)

    def _is_news(self, field: str, last: int | None) -> bool:
        """Tell whether it is news what a field has, and last had in the ``last`` window, if ever.

        It is after more than twice the longest pause: batches come again each night, and each
        sender may write another type.
        """
        if last is None:
            return True
        pause, longest = self._window - last, self.pauses.get(field, 0)
        self.pauses[field] = max(longest, pause)
        return pause > 2 * longest


def _sampled(start: int, end: int) -> Iterator[int]:
    """Yield the positions after ``start`` of one record in each `EVERY`, of all before ``end``.

    At places that vary: where senders take turns, the same one would always be looked at.
    """
    for block in range(start // EVERY, -(-end // EVERY)):
        at = block * EVERY + (block * _GOLDEN % 2**32 * EVERY >> 32)
        if start <= at < end:
            yield at - start


def _is_same_level(a: float, b: float) -> bool:
    return 1 / _LEAST_FACTOR < a / b < _LEAST_FACTOR


def common_factor(before: Quartiles, now: Quartiles) -> float | None:
    """Return the factor by which level and both quartiles grew or shrank; None without a large one.

    The median alone jumps where a field has several levels, such as those of services.
    """
    level, spread = before[1], before[2] - before[0]
    if level == 0 or spread == 0:
        return None
    factor = now[1] / level
    is_large = factor >= _LEAST_FACTOR or 0 < factor <= 1 / _LEAST_FACTOR
    if not is_large or not math.isfinite(factor):
        return None
    expected = [factor * of for of in (before[0], before[2], spread)]
    found = [now[0], now[2], now[2] - now[0]]
    return factor if all(map(_are_alike, expected, found)) else None


def _are_alike(a: float, b: float) -> bool:
    return a == b or (b != 0 and 1 / _ALIKE <= a / b <= _ALIKE)
