"""What the fields of a log hold: numbers, categories, times, counters, identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.topics import KafkaRecord, Kind
from faust_oslrau.topics.documents import parse
from faust_oslrau.topics.features import MAX_AUTO_FIELDS
from faust_oslrau.topics.fields import (
    fields_with,
    find,
    is_beyond,
    is_number,
    is_text,
    number_of,
)
from faust_oslrau.topics.times import as_time

MANY = 20
"""Records of each value, on average, that identifiers which are worth telling apart have."""

GAPS = 3
"""Numbers of a range for each that is seen, from which on they are codes and no quantity."""

# Steps that may go back, as between partitions or where records overtake each other.
_MOST_BACK = 0.01
_EARLIEST = 978_307_200_000
"""2001 in milliseconds: smaller numbers are hardly ever times."""


class Column(NamedTuple):
    """One field of the records that hold it.

    Attributes
    ----------
    name
        The name of the field.
    kind
        What it should be for the learner.
    why
        What the records say of it, in words.
    is_time
        Whether it holds the times of the records.
    by_auto
        Whether `features = "auto"` takes it for the same.
    n_values, entropy
        How many different contents it has, and their entropy in nats; 0 where they do not count.
    may_name_entity
        Whether its values come again often enough for them to be entities.
    numbers
        Its numbers (n,), empty for another kind.
    """

    name: str
    kind: Kind
    why: str
    is_time: bool = False
    by_auto: bool = False
    n_values: int = 0
    entropy: float = 0.0
    may_name_entity: bool = False
    numbers: NDArray[np.float64] = np.empty(0)


def columns_of(records: Sequence[KafkaRecord]) -> list[Column]:
    """Return the fields that at least a hundredth of the valid records have, by name."""
    contents: dict[str, list[object]] = {}
    n = 0
    for record in records:
        document = _document(record.value)
        if isinstance(document, dict):
            n += 1
            for name in fields_with(document, _is_scalar, MAX_AUTO_FIELDS) or ():
                contents.setdefault(name, []).append(find(document, name))
    return [column_of(name, of) for name, of in sorted(contents.items()) if len(of) * 100 >= n]


def column_of(name: str, contents: Sequence[object]) -> Column:
    """Tell what a field is by its ``contents`` in log order, none of which is missing."""
    if 2 * sum(map(is_text, contents)) > len(contents):
        return _of_texts(name, [content for content in contents if isinstance(content, str)])
    if 2 * sum(isinstance(content, bool) for content in contents) > len(contents):
        counts = np.unique([bool(content) for content in contents], return_counts=True)[1]
        return _category(name, "true or false", counts, by_auto=False)
    return _of_numbers(name, np.array([c for c in contents if is_number(c)], np.float64))


def _of_texts(name: str, texts: Sequence[str]) -> Column:
    if _are_times(texts):
        return Column(name, Kind.IGNORED, "times", is_time=True)
    numbers = [number for text in texts if (number := number_of(text)) is not None]
    if len(numbers) == len(texts) and any("." in text for text in texts):  # else they may be codes
        return Column(name, Kind.NUMBER, "numbers as text", numbers=np.array(numbers))
    counts = np.unique(texts, return_counts=True)[1]
    if 2 * len(counts) > len(texts):
        return Column(name, Kind.IGNORED, "hardly any text comes again")
    return _category(name, f"{len(counts):,} texts", counts, by_auto=True)


def _category(name: str, why: str, counts: NDArray[np.int64], *, by_auto: bool) -> Column:
    share = counts / counts.sum()
    return Column(
        name, Kind.CATEGORY, why, by_auto=by_auto, n_values=len(counts),
        entropy=float(-(share * np.log(share)).sum()),
        may_name_entity=len(counts) * MANY <= counts.sum(),
    )  # fmt: skip


def _of_numbers(name: str, x: NDArray[np.float64]) -> Column:
    steps = np.diff(x)
    rises = len(x) > MANY and np.mean(steps < 0) <= _MOST_BACK
    if rises and _are_times(x.tolist()):
        return Column(name, Kind.IGNORED, "times", is_time=True)
    if rises and np.mean(steps > 0) >= 1 - 2 * _MOST_BACK:
        return Column(name, Kind.IGNORED, "only grows")
    values, counts = np.unique(x, return_counts=True)
    if len(values) * MANY <= len(x):
        whole = bool((values == np.floor(values)).all())
        if len(values) == 2:
            return _category(name, "two different numbers", counts, by_auto=False)
        if whole and np.ptp(x) + 1 > GAPS * len(values) > GAPS:
            why = f"{len(values):,} whole numbers with gaps between them"
            return _category(name, why, counts, by_auto=False)
    return Column(name, Kind.NUMBER, "a number", by_auto=True, numbers=x)


def _are_times(contents: Sequence[str] | Sequence[float]) -> bool:
    return all((as_time(content) or 0) >= _EARLIEST for content in contents)


def _is_scalar(content: object) -> bool:
    return is_text(content) or (is_number(content) and not is_beyond(content))  # type: ignore[arg-type]


def _document(value: bytes | None) -> object:
    try:
        return parse(value or b"")
    except ValueError:
        return None
