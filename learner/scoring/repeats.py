"""How long fields have kept their values: a measure that shows what is stuck.

A value that is stuck in the middle of its range is in no tail. What is unusual is that it stays. A
field's run is the number of records for which it has had the same value, in its entity's records
if there are entities. It counts in units of the field's usual run, so that a set point may stay for
hours while a temperature may not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.vector.compiler import Array, kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

MEMORY = 8192.0
"""Records that usual runs are averaged over."""

SHORTEST = 12.0
"""Usual runs up to which a run counts nothing: by chance, one in 160,000 is longer."""

LONGEST = 32.0
"""Usual runs that a longer run counts as: a field that stays for good is usual at last."""


class Repeats:
    """The runs of each slot's fields, and the usual run of each field.

    A slot's runs change with each record, what is usual in ``end_batch`` alone.

    Attributes
    ----------
    last, runs
        Latest value and its repetitions (slots, d).
    counts
        Records and changes of value (2, d), of all slots.
    """

    def __init__(self) -> None:
        self.last, self.runs = np.empty((0, 0)), np.empty((0, 0))
        self.counts = np.empty((2, 0))
        self._new = np.empty((2, 0))

    def take(self, rows: FloatArray, slots: IntArray, fresh: Mask) -> FloatArray:
        """Return by how many usual runs the longest run of the next rows (m, d) is too long (m,).

        ``slots`` (m,) are those of the rows, ``fresh`` (m,) says which begin anew there.
        """
        m, d = rows.shape
        if self.counts.shape[1] == 0:
            self.counts, self._new = np.zeros((2, d)), np.zeros((2, d))
        held, needed = len(self.last), int(slots.max(initial=-1)) + 1
        if held < needed:
            room = max(needed, 2 * held)
            self.last = _enlarged(self.last.reshape(-1, d), room, np.nan)
            self.runs = _enlarged(self.runs.reshape(-1, d), room, 0.0)
        records, changes = self.counts
        usual, result = (records + 1.0) / (changes + 1.0), np.empty(m)
        follow_runs(rows, slots, fresh, usual, self.last, self.runs, self._new, result)
        return result

    def end_batch(self) -> None:
        """End a learning batch: learn which runs are usual."""
        kept = np.exp(-self._new[:1] / MEMORY)
        self.counts = self.counts * kept + self._new
        self._new = np.zeros_like(self._new)

    def state(self, slots: int) -> dict[str, NDArray[Any]]:
        """Return all that ``restore`` needs, of so many slots in use."""
        return {
            "run_last": self.last[:slots],
            "run_lengths": self.runs[:slots],
            "run_counts": self.counts,
            "run_new": self._new,
        }

    def restore(self, arrays: dict[str, NDArray[Any]], d: int) -> None:
        """Restore a state of rows of ``d`` fields; StateError if it cannot be one."""
        last, runs, counts, new = (
            arrays[f"run_{name}"] for name in ("last", "lengths", "counts", "new")
        )
        if last.ndim != 2 or last.shape != runs.shape or last.shape[1] not in (0, d):
            raise StateError("state: expected a latest value and a run of each field")
        if counts.shape not in ((2, 0), (2, d)) or counts.shape != new.shape:
            raise StateError("state: expected the usual run of each field")
        numbers = (runs, counts, new)
        if np.isinf(last).any() or not all((n >= 0).all() and (n < np.inf).all() for n in numbers):
            raise StateError("state: expected finite runs of at least 0")
        self.last, self.runs, self.counts, self._new = last, runs, counts, new


@kernel
def follow_runs(
    rows: Array,
    slots: Array,
    fresh: Array,
    usual: Array,
    last: Array,
    runs: Array,
    counts: Array,
    result: Array,
) -> None:
    """Fill ``result`` (m,) with the excess of each row's longest run (m, d) in ``usual`` ones (d,).

    Changes ``last`` and ``runs`` (slots, d) record by record, and adds to ``counts`` (2, d).
    """
    m, d = rows.shape
    for r in range(m):
        slot, longest = slots[r], 0.0
        if fresh[r]:
            last[slot] = np.nan
        for j in range(d):
            x = rows[r, j]
            if x != x:
                continue
            counts[0, j] += 1.0
            if x == last[slot, j]:
                runs[slot, j] += 1.0
            else:
                last[slot, j], runs[slot, j] = x, 0.0
                counts[1, j] += 1.0
            longest = max(longest, runs[slot, j] / usual[j])
        result[r] = max(min(longest, LONGEST) - SHORTEST, 0.0)


def _enlarged(array: FloatArray, n: int, value: float) -> FloatArray:
    larger = np.full((n, array.shape[1]), value)
    larger[: len(array)] = array
    return larger
