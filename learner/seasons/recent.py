"""The last rows of a stream, to learn them anew when the season changes their units."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.state_schema import LARGEST, Entry, counts, flags, read
from faust_oslrau.learner.stored import Places

MOST = 4096
"""Rows that are kept: enough for a network, and to calibrate its scores."""


class Rows(NamedTuple):
    """Rows in log order.

    Attributes
    ----------
    values
        The rows (m, d) as they were given to the season.
    times
        Their time stamps in milliseconds (m,), or those of the last row before that has one;
        negative before the first.
    slots, fresh
        Their entities' slots (m,), and which began anew there (m,).
    beside
        What else is known of them (m, 3), of their categories.
    """

    values: FloatArray
    times: IntArray
    slots: IntArray
    fresh: Mask
    beside: FloatArray

    def part(self, at: slice) -> Self:
        """Return some of the rows."""
        return type(self)._make(column[at] for column in self)


_ROWS = {
    "rows": Entry(("m", "d"), nan=True),
    "times": Entry(("m",), dtype="<i8"),
    "slots": counts("m"),
    "fresh": flags("m"),
    "beside": Entry(("m", 3), most=[0.0, LARGEST, 0.0]),
}


class RecentRows:
    """The last rows up to the last learning boundary, and those since then."""

    def __init__(self) -> None:
        self._settled: list[Rows] = []
        self._pending: list[Rows] = []

    def add(self, rows: Rows) -> None:
        """Add the next rows."""
        self._pending.append(rows)

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, which the rows so far lack."""
        for parts in (self._settled, self._pending):
            parts[:] = [rows._replace(values=places.widened(rows.values, 1)) for rows in parts]

    def settle(self) -> Rows:
        """Return the rows since the last boundary, and make this one the last."""
        latest = joined(self._pending)
        everything = joined([*self._settled, latest])
        self._settled, self._pending = [everything.part(slice(-MOST, None))], []
        return latest

    def forget(self) -> None:
        """Forget the rows up to the last learning boundary, as units have changed."""
        self._settled = []

    @property
    def settled(self) -> Rows:
        """The last rows up to the last boundary, the first of which there is one."""
        return self._settled[0]

    def state(self) -> Arrays:
        """Return all that ``restore`` needs."""
        parts = [*self._settled, *self._pending]
        rows = joined(parts) if parts else _no_rows()
        stored = rows._replace(fresh=rows.fresh.astype(np.uint8))
        return {f"season_{name}": array for name, array in zip(_ROWS, stored, strict=True)}

    def restore(self, arrays: Arrays, d: int | None, pending: int) -> None:
        """Restore a state of ``d`` fields, whose last ``pending`` rows came after the boundary."""
        most = range(pending, pending + MOST + 1)
        rows = Rows(*read(arrays, _ROWS, "season_", m=most, d=(0, d or 0)))
        m = len(rows.values)
        if m > pending:
            self._settled = [rows.part(slice(m - pending))]
        if pending > 0:
            self._pending = [rows.part(slice(m - pending, m))]


def joined(parts: list[Rows]) -> Rows:
    """Return rows one after the other."""
    return Rows(*map(np.concatenate, zip(*parts, strict=True)))


def _no_rows() -> Rows:
    none = np.empty(0, np.int64)
    return Rows(np.empty((0, 0)), none, none, np.empty(0, np.bool_), np.empty((0, 3)))
