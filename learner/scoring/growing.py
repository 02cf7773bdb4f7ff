"""Columns that only grow, such as counters and time stamps: every next value is a new record."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.state_schema import Arrays, Entry, counts, flags, read

FloatArray = NDArray[np.float64]

DECIDED_AT = 240
"""Records of the stream at which it is decided, a learning boundary."""

LEAST_RISES, MOST_FALLS = 0.95, 0.01
"""Shares of the steps from one value to the next with which a column only grows: where several
sources write, a time stamp now and then comes late."""

_GROWING = {
    "last": Entry(("w",), nan=True),
    "steps": counts(3, "w"),
    "left_out": flags("w"),
    "state": counts(2),
}


class Growing:
    """Looks for columns that only grow among the first records, to leave them out.

    Parameters
    ----------
    watched
        Columns that may be left out.

    Attributes
    ----------
    left_out, columns
        Which of the ``watched`` columns are, and their numbers.
    n_before
        Records before the stream began anew without them.
    """

    def __init__(self, watched: Collection[int]) -> None:
        self.watched = np.array(sorted(watched), np.int64)
        self.left_out = np.zeros(len(watched), np.bool_)
        self.columns: list[int] = []
        self.n_before = 0
        self.is_watching = len(watched) > 0
        self._last = np.full(len(watched), np.nan)
        self._steps = np.zeros((3, len(watched)), np.int64)  # all, up, down

    def without(self, rows: FloatArray) -> FloatArray:
        """Return rows (m, d) in which the columns that are left out are missing."""
        if not self.columns:
            return rows
        rows = rows.copy()
        rows[:, self.columns] = np.nan
        return rows

    def watch(self, rows: FloatArray) -> None:
        """Count the steps of the next rows (m, d)."""
        for w, column in enumerate(self.watched.tolist() if self.is_watching else []):
            values = rows[:, column]
            values = np.append(self._last[w], values[~np.isnan(values)])
            steps = np.diff(values)
            self._steps[:, w] += [np.sum(~np.isnan(steps)), np.sum(steps > 0), np.sum(steps < 0)]
            self._last[w] = values[-1]

    def decide(self, n_records: int, d: int) -> bool:
        """Decide after so many records, if it is time; return whether columns are left out now.

        If all ``d`` columns only grow, none is.
        """
        if not self.is_watching or n_records < DECIDED_AT:
            return False
        self.is_watching = False
        n, up, down = self._steps
        enough = n >= DECIDED_AT // 2
        self.left_out = enough & (up >= LEAST_RISES * n) & (down <= MOST_FALLS * n)
        self.left_out &= self.left_out.sum() < d
        self.columns = self.watched[self.left_out].tolist()
        self.n_before = n_records if self.columns else 0
        return self.n_before > 0

    def state(self) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        return {
            "growing_last": self._last,
            "growing_steps": self._steps,
            "growing_left_out": self.left_out.astype(np.uint8),
            "growing_state": np.array([self.is_watching, self.n_before], np.int64),
        }

    def restore(self, arrays: Arrays) -> None:
        """Restore a state of as many columns; StateError if it cannot be one."""
        self._last, self._steps, left_out, state = read(
            arrays, _GROWING, "growing_", w=len(self.watched)
        )
        self.is_watching, self.n_before = bool(state[0]), int(state[1])
        self.left_out = left_out.astype(np.bool_)
        self.columns = self.watched[self.left_out].tolist()
