"""The range of each field's values, which tells where a model extrapolates."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, Mask
from faust_oslrau.learner.state_schema import Entry, expect
from faust_oslrau.learner.stored import Stored


class Ranges(Stored):
    """The lowest and the highest value (d,) that each field had among a stream's learned records.

    NaN for a field without values; empty before the first records. Changes in ``update`` alone,
    which the scorer calls at learning boundaries.
    """

    schema: ClassVar = {
        "lowest": Entry(("d",), nan=True, field=np.nan),
        "highest": Entry(("d",), nan=True, field=np.nan),
    }

    def __init__(self) -> None:
        self.lowest, self.highest = np.empty(0), np.empty(0)

    def restore(self, arrays: Arrays, d: int | None) -> None:
        """Restore a state of ``d`` fields; StateError if it cannot be one."""
        self.read_state(arrays, d=(0, d or 0))
        unknown = np.isnan(self.lowest) & np.isnan(self.highest)
        is_range = unknown | (self.lowest <= self.highest)
        expect(is_range.all(), "the lowest value of each field below the highest")

    def update(self, rows: FloatArray) -> None:
        """Add records (m, d)."""
        if len(rows) > 0:
            known = [self.lowest[None], self.highest[None]] if len(self.lowest) > 0 else []
            every = np.concatenate([*known, rows]).T.copy()  # numpy is slow at short rows
            self.lowest, self.highest = (f.reduce(every, axis=1) for f in (np.fmin, np.fmax))

    def is_outside(self, values: FloatArray) -> Mask:
        """Tell which ``values`` (k, d) are outside the range; False where no range is known."""
        if len(self.lowest) == 0:
            return np.zeros(values.shape, np.bool_)
        return np.asarray((values < self.lowest) | (values > self.highest), np.bool_)
