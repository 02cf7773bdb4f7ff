"""Time stamps as dates and hours of a time zone, with its daylight saving."""

from __future__ import annotations

from datetime import datetime
from functools import cache, lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.errors import InvalidParameterError
from faust_oslrau.learner.scoring.clock import DAY

QUARTER = 900_000
"""Milliseconds of a quarter of an hour: clocks change only between two of them."""

LATEST = 250_000_000_000_000
"""Time stamps from here on, in the year 9892, are beyond Python's calendar and count as unknown."""

UNKNOWN = -1
"""Date of a record without a time."""


class Calendar:
    """Dates and hours in a time zone of the tz database, such as ``Europe/Berlin``."""

    def __init__(self, zone: str) -> None:
        if not isinstance(zone, str) or zone not in _names():
            raise InvalidParameterError(
                f"seasons = {zone!r}: expected a time zone such as Europe/Berlin or UTC"
            )
        self._zone = _zone(zone)

    def local(self, times: IntArray) -> tuple[IntArray, FloatArray]:
        """Return date and hour (m,) of time stamps in milliseconds.

        A date is a number of days since 1970-01-01, `UNKNOWN` for negative time stamps and those
        from `LATEST` on. An hour is in [0, 24).
        """
        known = (times >= 0) & (times < LATEST)
        quarters, which = np.unique(np.where(known, times, 0) // QUARTER, return_inverse=True)
        offsets = np.array([offset(self._zone, q) for q in quarters.tolist()], np.int64)
        local = np.where(known, times, 0) + offsets[which]
        return np.where(known, local // DAY, UNKNOWN), (local % DAY) / 3_600_000.0


@cache
def _names() -> frozenset[str]:
    # Factory is what a host has before it has a zone.
    return frozenset((files("tzdata") / "zones").read_text().split()) - {"Factory"}


@cache
def _zone(name: str) -> ZoneInfo:
    """Return a zone as the package tzdata has it: operating systems differ, and so would scores."""
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)


@lru_cache(maxsize=4096)
def offset(zone: ZoneInfo, quarter: int) -> int:
    """Return by how many milliseconds the clocks of a zone are ahead of UTC."""
    there = datetime.fromtimestamp(quarter * QUARTER // 1000, zone).utcoffset()
    return 0 if there is None else round(there.total_seconds() * 1000)


def weekday(date: IntArray) -> IntArray:
    """Return the days of the week of some dates, 0 = Monday."""
    return (date + 3) % 7


def week(date: IntArray) -> IntArray:
    """Return the weeks of some dates; they begin on Mondays."""
    return (date + 3) // 7
