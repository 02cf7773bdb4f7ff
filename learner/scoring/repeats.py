"""How long fields have kept their values: evidence that a sensor is stuck.

A value that is stuck in the middle of its range is in no tail. What is unusual is that it stays. A
field's run is the number of records for which it has had the same value, in its entity's records if
there are entities. Where values are drawn anew with a constant probability, a run is longer than r
mean runs with probability exp(-r): so it is evidence of r nats. The mean is that of the runs in
which records lie, so that a field that rests now and then, for long, is no fault.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.state_schema import Entry
from faust_oslrau.learner.stored import SLOTS, Places, Stored, doubled
from faust_oslrau.learner.vector.compiler import Array, kernel

MEMORY = 8192.0
"""Records that mean runs are averaged over."""


class Repeats(Stored):
    """The runs of each slot's fields, and the mean run of each field.

    A slot's runs change with each record, what is usual in ``end_batch`` alone.

    Attributes
    ----------
    last, lengths
        Latest value and its repetitions (slots, d).
    counts
        Records, and the sum of their squared runs (2, d), of all slots.
    """

    schema: ClassVar = {
        "last": Entry((SLOTS, "d"), nan=True, new=np.nan, field=np.nan),
        "lengths": Entry((SLOTS, "d"), 0.0),
        "counts": Entry((2, "w"), 0.0),
        "_new": Entry((2, "w"), 0.0),
    }
    prefix = "run_"

    def __init__(self) -> None:
        self.last, self.lengths = np.empty((0, 0)), np.empty((0, 0))
        self.counts, self._new = np.empty((2, 0)), np.empty((2, 0))
        self._mean = np.empty(0)

    def take(self, rows: FloatArray, slots: IntArray, fresh: Mask) -> FloatArray:
        """Return the evidence (m, d), in nats, that fields of the next rows (m, d) are stuck.

        ``slots`` (m,) are those of the rows, ``fresh`` (m,) says which begin anew there.
        """
        d = rows.shape[1]
        if self.counts.shape[1] == 0:
            self.counts, self._new = np.zeros((2, d)), np.zeros((2, d))
            self._set_mean()
        needed = int(slots.max(initial=-1)) + 1
        if needed > len(self.last):
            self.reserve(doubled(len(self.last), needed), d=d)
        result, usual = np.empty(rows.shape), math.log(d)
        follow_runs(
            rows, slots, fresh, self._mean, usual, self.last, self.lengths, self._new, result
        )  # fmt: skip
        return result

    def end_batch(self) -> None:
        """End a learning batch: learn which runs are usual."""
        kept = np.exp(-self._new[:1] / MEMORY)
        self.counts = self.counts * kept + self._new
        self._new = np.zeros_like(self._new)
        self._set_mean()

    def _set_mean(self) -> None:
        records, squares = self.counts
        self._mean = np.maximum(0.5 * squares / np.maximum(records, 1.0), 1.0)

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, which have no runs yet."""
        super().add_fields(places)
        self._set_mean()

    def restore(self, arrays: Arrays, d: int) -> None:
        """Restore a state of rows of ``d`` fields; StateError if it cannot be one."""
        self.read_state(arrays, d=(0, d), w=(0, d))
        self._set_mean()


@kernel
def follow_runs(
    rows: Array,
    slots: Array,
    fresh: Array,
    mean: Array,
    usual: float,
    last: Array,
    runs: Array,
    counts: Array,
    result: Array,
) -> None:
    """Fill ``result`` (m, d) with the runs of rows (m, d) in ``mean`` ones (d,), less the usual.

    A missing value is no evidence, and ends no run. Changes ``last`` and ``runs`` (slots, d) record
    by record, and adds to ``counts`` (2, d).
    """
    m, d = rows.shape
    for r in range(m):
        slot = slots[r]
        if fresh[r]:
            last[slot], runs[slot] = np.nan, 0.0
        for j in range(d):
            x = rows[r, j]
            if x == last[slot, j]:
                runs[slot, j] += 1.0
            elif x == x:
                last[slot, j], runs[slot, j] = x, 0.0
            else:
                result[r, j] = 0.0
                continue
            counts[0, j] += 1.0
            counts[1, j] += 2.0 * runs[slot, j] + 1.0
            result[r, j] = max(runs[slot, j] / mean[j] - usual, 0.0)
