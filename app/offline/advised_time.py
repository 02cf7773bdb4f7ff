"""Tells which of several fields with times says when records happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from faust_oslrau.topics import KafkaRecord, TimeReader
from faust_oslrau.topics.columns import FEW
from faust_oslrau.topics.documents import parsed
from faust_oslrau.topics.fields import find, is_number

# Milliseconds by which clocks may be ahead.
_AHEAD = 60_000
# One in so many times may be wrong at either end.
_OUTER = 100
# Parts of the longer one by which two spans of the same log differ, as times are late by more or
# less.
_ALIKE = 0.1


class _Times(NamedTuple):
    """By how much a field is not when records happened: what is less is better.

    Attributes
    ----------
    distance
        How far it is from their own times, in milliseconds; 0 where they have none.
    back
        How often it goes back.
    is_coarse
        Whether hardly any value is another one, as of days.
    is_other
        Whether it may be another quantity: a number that goes slower or faster than other times.
    repeated
        The share of values that others have, too: one of milliseconds tells more than of seconds.
    median
        How late it is, as one that goes with another may be a year ahead.
    """

    distance: float
    back: float
    is_coarse: bool
    is_other: bool
    repeated: float
    median: float


def best_time(records: Sequence[KafkaRecord], names: Sequence[str]) -> str | None:
    """Return the field that moves with the records; None if all are mostly in the future."""
    read = {name: TimeReader(name).read(records) for name in names}
    spans = [
        span(known(times)) for name, times in read.items() if not _is_numeric(records, name)
    ]  # fmt: skip
    found = {
        name: times for name in names
        if (times := _times(records, read[name], spans, _is_numeric(records, name))) is not None
    }  # fmt: skip
    return min(found, key=found.__getitem__) if found else None


def _times(
    records: Sequence[KafkaRecord],
    times: Sequence[int | None],
    spans: Sequence[float],
    is_numeric: bool,
) -> _Times | None:
    """Describe a field; None for one that lies mostly in the future."""
    at = np.array([each for each in times if each is not None], np.float64)
    if len(at) == 0:
        return None
    off = np.array([
        each - r.timestamp for each, r in zip(times, records, strict=True)
        if each is not None and r.timestamp is not None
    ])  # fmt: skip
    if len(off) and np.median(off) > _AHEAD:
        return None
    n_values, own = len(np.unique(at)), span(known(times))
    return _Times(
        distance=float(np.median(np.abs(off))) if len(off) else 0.0,
        back=round(float(np.mean(np.diff(at) < 0)), 2),
        is_coarse=n_values * FEW < len(at),
        is_other=is_numeric and not any(_are_alike(own, each) for each in spans),
        repeated=round(1.0 - n_values / len(at), 2),
        median=float(np.median(at)),
    )


def _is_numeric(records: Sequence[KafkaRecord], field: str) -> bool:
    contents = (find(parsed(record.value), field) for record in records)
    return is_number(next((each for each in contents if each is not None), None))


def _are_alike(a: float, b: float) -> bool:
    return abs(a - b) <= _ALIKE * max(a, b)


def known(times: Sequence[int | None]) -> list[int]:
    """Return the times that are known, in order."""
    return sorted(time for time in times if time is not None)


def span(times: Sequence[int]) -> float:
    """Return how long sorted times last, whatever the first and last hundredth of them are.

    A single clock may be wrong by years.
    """
    if len(times) < 2:
        return 0.0
    first, last = len(times) // _OUTER, len(times) - 1 - len(times) // _OUTER
    return (times[last] - times[first]) * (len(times) - 1) / (last - first)
