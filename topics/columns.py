"""What fields hold, as their contents show it: numbers, categories, times, identifiers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .fields import JsonObject, fields_with, find, is_beyond, is_number, is_text, number_of
from .times import EARLIEST, as_time

MOST_CONTENTS = 4096
"""Fields of a record that are looked at: one with more is likely a list."""

FEW = 100
"""One in so many that have a field, or contents of another type, counts; fewer are mistakes."""

MANY = 20
"""Contents of each value, on average, from which on the values come again."""

MOST_VERSIONS = 12
"""Different texts of numbers that may be versions or codes, if they come again."""

GAPS = 3
"""Steps of a range for each of its numbers, from which on they are codes and no quantity."""

SURE = 1000
"""Contents after which two different numbers are no count that is nearly always the lower one, and
rises for each fall from which on numbers are those of a counter: levels fall again sooner."""

FEWEST_RISES = 5
"""Rises without a fall that show a counter, if its name says so."""

FAR = 10
"""Times its first number to which a counter that began near 0 has grown, after some rises."""

DISPERSION = 20.0
"""Variance over mean up to which whole numbers are counts; that of Poisson's distribution is 1."""

COMMONEST = 0.98
"""Share of the commonest number from which on another one is an event, and no count of them."""

LARGEST_WHOLE = 2.0**53
"""Number beyond which doubles leave out whole numbers."""

NEAR = 30 * 86_400_000
"""Milliseconds from a record's own time within which its times are: devices keep what they cannot
send, and there is hardly any other number so large."""

# Steps that may go back, as between partitions, and times that may be far off, as of wrong clocks.
_MOST_BACK = 0.01
# "id" as a word of its own, at the end of a name such as user.id, user_id or userId
_IDENTIFIER = re.compile(r"(?:^|[^A-Za-z])[Ii][Dd]$|(?<=[a-z])I[dD]$")
_WITHOUT_YEAR = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d")  # as of syslog
# Words for codes, as in status, http_status, errorCode or event.type. A level is one of a log only
# by its own name and with gaps between its values, as a tank has levels, too.
_CODE = re.compile(
    r"(?:^|[^A-Za-z])(?i:status|state|code|type|errno|port|zip|mcc)$"
    r"|(?<=[a-z])(?:Status|State|Code|Type|Errno|Port|Zip|Mcc)$"
)
_LOG_LEVEL = re.compile(r"(?:^|\.|log[._]?)level$", re.IGNORECASE)
# Words for counters, which OpenMetrics puts at the end of their names.
_TOTAL = re.compile(r"(?:^|[^A-Za-z])(?i:total|count|sum)$|(?<=[a-z])(?:Total|Count|Sum)$")


class Kind(StrEnum):
    """What a field holds."""

    NUMBER = "number"
    COUNT = "count"
    CATEGORY = "category"
    IGNORED = "ignored"


NUMERIC = (Kind.NUMBER, Kind.COUNT)
"""Kinds of fields that hold numbers."""


class Column(NamedTuple):
    """One field of the records that hold it.

    Attributes
    ----------
    name
        The name of the field.
    kind
        What it should be for the learner.
    why
        What the contents say of it, in words.
    is_time
        Whether it holds the times of the records.
    is_plain
        Whether the first records show the kind.
    n_values, entropy
        How many different contents it has, and their entropy in nats; 0 where they do not count.
    may_name_entity
        Whether its values come again often enough for them to be entities.
    n
        How many of the records have it.
    is_mixed
        Whether at least a hundredth of its contents are no numbers, but most are.
    numbers
        Its numbers (n,), empty for another kind.
    """

    name: str
    kind: Kind
    why: str
    is_time: bool = False
    is_plain: bool = False
    n_values: int = 0
    entropy: float = 0.0
    may_name_entity: bool = False
    n: int = 0
    is_mixed: bool = False
    numbers: NDArray[np.float64] = np.empty(0)

    @property
    def is_constant(self) -> bool:
        """Whether it has a single value."""
        return self.n_values == 1 or (len(self.numbers) > 0 and np.ptp(self.numbers) == 0.0)


def columns_of(
    documents: Sequence[JsonObject],
    times: Sequence[int | None] | None = None,
    keys: Sequence[bytes | None] | None = None,
) -> list[Column]:
    """Return the fields that at least a hundredth of the documents have, by name.

    ``times`` are those of the documents, in milliseconds, and ``keys`` those of their records.
    Numbers that only grow for each key, for each value of a category, or for each text or whole
    number that comes again by turns, are those of a counter.
    """
    found: dict[str, tuple[list[object], list[int]]] = {}
    for i, document in enumerate(documents):
        for name in fields_with(document, _is_content, MOST_CONTENTS) or ():
            contents, places = found.setdefault(name, ([], []))
            contents.append(find(document, name))
            places.append(i)
    found = {name: of for name, of in sorted(found.items()) if len(of[0]) * FEW >= len(documents)}
    columns = [
        column_of(name, contents, times and [times[i] for i in places])._replace(n=len(places))
        for name, (contents, places) in found.items()
    ]
    groups = [] if keys is None else [_pairs(keys)]
    groups += [
        _pairs(contents)
        for column, (contents, _) in zip(columns, found.values(), strict=True)
        if len(contents) == len(documents) and _may_name_device(column, contents)
    ]
    return [
        Column(column.name, Kind.IGNORED, "only grows for each of several")
        if any(of.n == len(column.numbers) and _grows_within(of, column) for of in groups)
        else column
        for column in columns
    ]


def column_of(
    name: str, contents: Sequence[object], times: Sequence[int | None] | None = None
) -> Column:
    """Tell what a field is by its ``contents`` in log order, none of which is missing.

    ``times`` are those of their records, in milliseconds.
    """
    if times is not None and _are_near(contents, times):
        return Column(name, Kind.IGNORED, "times", is_time=True)
    if 2 * sum(map(is_text, contents)) > len(contents):
        return _of_texts(name, [content for content in contents if isinstance(content, str)])
    if 2 * sum(isinstance(content, bool) for content in contents) > len(contents):
        counts = np.unique([bool(content) for content in contents], return_counts=True)[1]
        return _category(name, "true or false", counts, is_plain=False)
    numbers = [content for content in contents if is_number(content)]
    if 2 * len(numbers) <= len(contents):
        return Column(name, Kind.IGNORED, "hardly any number or text")
    column = _of_numbers(name, np.array(numbers, np.float64))
    n_others = len(contents) - len(numbers)
    return column._replace(is_mixed=n_others * FEW >= len(contents) > len(numbers))


def _of_texts(name: str, texts: Sequence[str]) -> Column:
    numbers = [number for text in texts if (number := number_of(text)) is not None]
    are_numbers = len(numbers) == len(texts)
    if _are_times(texts) and (not are_numbers or _rises(np.array(numbers))):
        return Column(name, Kind.IGNORED, "times", is_time=True)
    if all(map(_WITHOUT_YEAR.match, texts)):
        return Column(name, Kind.IGNORED, "times without a year")
    counts = np.unique(texts, return_counts=True)[1]
    are_few = len(counts) <= MOST_VERSIONS and len(counts) * MANY <= len(texts)
    # Without a point they may be codes, and a few are those of versions, such as "3.11".
    if are_numbers and any("." in text for text in texts) and not are_few:
        return Column(name, Kind.NUMBER, "numbers as text", numbers=np.array(numbers))
    if not _come_again(counts):
        return Column(name, Kind.IGNORED, "hardly any text comes again")
    return _category(name, f"{len(counts):,} texts", counts, is_plain=True)


def _come_again(counts: NDArray[np.int64]) -> bool:
    """Tell whether contents with these ``counts`` come twice on average."""
    return bool(2 * len(counts) <= counts.sum())


def _category(name: str, why: str, counts: NDArray[np.int64], *, is_plain: bool) -> Column:
    share = counts / counts.sum()
    return Column(
        name, Kind.CATEGORY, why, is_plain=is_plain, n_values=len(counts),
        entropy=float(-(share * np.log(share)).sum()),
        may_name_entity=len(counts) * MANY <= counts.sum(),
    )  # fmt: skip


def _of_numbers(name: str, x: NDArray[np.float64]) -> Column:
    rises = _rises(x)
    if rises and _are_times(x.tolist()) and not _IDENTIFIER.search(name):
        return Column(name, Kind.IGNORED, "times", is_time=True)
    values, counts = np.unique(x, return_counts=True)
    if rises and _is_counter(name, x):
        return Column(name, Kind.IGNORED, "only grows")
    comes_again, whole = len(values) * MANY <= len(x), bool((values == np.floor(values)).all())
    if whole and _IDENTIFIER.search(name):
        if comes_again:
            return _category(name, f"{len(values):,} identifiers", counts, is_plain=False)
        return Column(name, Kind.IGNORED, "identifiers, by their name")
    if whole and _are_codes(name, values) and _come_again(counts):
        return _category(name, "codes, by their name", counts, is_plain=False)
    if comes_again:
        if len(values) == 2 and (len(x) >= SURE or _are_flags(values, counts)):
            return _category(name, "two different numbers", counts, is_plain=False)
        if whole and values[0] > 0 and _steps(values) + 1 > GAPS * len(values):
            why = f"{len(values):,} whole numbers with gaps between them"
            return _category(name, why, counts, is_plain=False)
    if _are_counts(values, counts):
        return Column(name, Kind.COUNT, "a count", is_plain=True, numbers=x)
    return Column(name, Kind.NUMBER, "a number", is_plain=True, numbers=x)


def _rises(x: NDArray[np.float64]) -> bool:
    return len(x) > MANY and bool(np.mean(x[1:] < x[:-1]) <= _MOST_BACK)


def _is_counter(name: str, x: NDArray[np.float64]) -> bool:
    """Tell whether numbers (n,) only grow, from near 0 or for longer than levels do."""
    moved = x[np.append(True, x[1:] != x[:-1])]
    # Devices that are asked by turns have numbers that grow nearly always, and come again.
    if _come_again(np.unique(moved, return_counts=True)[1]):
        return False
    is_far = len(moved) > MANY and 0 <= FAR * x[0] <= x[-1] and bool((np.diff(x) >= 0).all())
    return is_far or _grows(name, x, _pairs([None] * len(x)))


def _grows(name: str, x: NDArray[np.float64], of: _Pairs) -> bool:
    """Tell whether numbers grow nearly always, or whenever they change, if they do so for long.

    Counters stand still while nothing happens, but slow levels of few digits do so, too.
    """
    before, after = x[of.before], x[of.after]
    if np.mean(after > before) >= 1 - 2 * _MOST_BACK:
        return True
    # A step of a level that all devices share is one, not one of each.
    n_moved = min(int(np.sum(after != before)), int(np.count_nonzero(np.diff(x))))
    least = FEWEST_RISES if _TOTAL.search(name) else SURE
    return n_moved >= max(least, SURE * int(np.sum(after < before)))


class _Pairs(NamedTuple):
    """Records that follow each other of the same device: the former ones and the latter ones (m,).

    ``n`` are all records.
    """

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    n: int


def _pairs(group: Sequence[object]) -> _Pairs:
    of = _numbered(group)
    order = np.argsort(of, kind="stable")
    alike = np.diff(of[order]) == 0
    return _Pairs(order[:-1][alike], order[1:][alike], len(of))


def _numbered(group: Sequence[object]) -> NDArray[np.int64]:
    number: dict[str, int] = {}
    return np.array([number.setdefault(str(each), len(number)) for each in group], np.int64)


def _may_name_device(column: Column, contents: Sequence[object]) -> bool:
    """Tell whether contents may be those of devices: texts or whole numbers that come by turns."""
    if column.kind == Kind.CATEGORY:
        return True
    if column.is_time or not all(is_text(each) or _is_whole(each) for each in contents):
        return False
    of = _numbered(contents)
    n_runs = 1 + np.count_nonzero(np.diff(of))
    return bool(n_runs - (of.max() + 1) >= MANY)


def _is_whole(content: object) -> bool:
    return isinstance(content, int) or (isinstance(content, float) and content.is_integer())


def _grows_within(of: _Pairs, column: Column) -> bool:
    """Tell whether a field's numbers only grow for each of several."""
    return len(of.before) >= MANY and _grows(column.name, column.numbers, of)


def _are_counts(values: NDArray[np.float64], counts: NDArray[np.int64]) -> bool:
    """Tell whether numbers vary as those of events in a stretch of time do."""
    if values[0] < 0 or values[-1] > LARGEST_WHOLE or (values != np.floor(values)).any():
        return False
    mean = np.average(values, weights=counts)
    variance = np.average((values - mean) ** 2, weights=counts)
    return bool(variance <= DISPERSION * mean and counts.max() <= COMMONEST * counts.sum())


def _are_flags(values: NDArray[np.float64], counts: NDArray[np.int64]) -> bool:
    """Tell whether numbers are 0 and 1, of which both come so often that a count would reach 2.

    With k ones, n numbers of Poisson's distribution have none above 1 with a probability of about
    exp(-k^2 / 2n).
    """
    enough = counts.min() ** 2 >= 2 * math.log(SURE) * counts.sum()
    return bool(enough and values[0] == 0.0 and values[1] == 1.0)


def _are_codes(name: str, values: NDArray[np.float64]) -> bool:
    has_gaps = bool(np.ptp(values) + 1 > GAPS * len(values))
    return _CODE.search(name) is not None or (has_gaps and _LOG_LEVEL.search(name) is not None)


def _steps(values: NDArray[np.float64]) -> int:
    """Return how many steps of their greatest common divisor lie between the values.

    Not of their differences, as identifiers may be so far from each other.
    """
    if np.ptp(values) == 0.0 or values[-1] > LARGEST_WHOLE:
        return 0
    return int(np.ptp(values)) // math.gcd(*values.astype(np.int64).tolist())


def _are_times(contents: Sequence[str] | Sequence[float]) -> bool:
    return all((as_time(content) or 0) >= EARLIEST for content in contents)


def _are_near(contents: Sequence[object], times: Sequence[int | None]) -> bool:
    """Tell whether contents are times near those of their records, in whatever order."""
    found = [
        (as_time(content) or 0, time or 0) for content, time in zip(contents, times, strict=True)
    ]
    n_near = sum(at >= EARLIEST and abs(at - time) <= NEAR for at, time in found)
    return n_near >= (1 - _MOST_BACK) * len(contents)


def _is_content(content: object) -> bool:
    return content is not None and not (is_number(content) and is_beyond(content))  # type: ignore[arg-type]
