"""The range of each field's values, which tells where a model extrapolates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError

FloatArray = NDArray[np.float64]


class Ranges:
    """The lowest and the highest value (d,) that each field had among a stream's learned records.

    NaN for a field without values; empty before the first records. Changes in ``update`` alone,
    which the scorer calls at learning boundaries.
    """

    def __init__(self) -> None:
        self.lowest, self.highest = np.empty(0), np.empty(0)

    def restore(self, lowest: FloatArray, highest: FloatArray, d: int | None) -> None:
        """Restore a state of ``d`` fields; StateError if it cannot be one."""
        if lowest.shape != highest.shape or lowest.shape not in ((0,), (d,)):
            raise StateError("state: expected a lowest and a highest value for each field")
        unknown = np.isnan(lowest) & np.isnan(highest)
        if np.isinf([lowest, highest]).any() or not (unknown | (lowest <= highest)).all():
            raise StateError("state: expected finite ranges of values")
        self.lowest, self.highest = lowest, highest

    def update(self, rows: FloatArray) -> None:
        """Add records (m, d)."""
        if len(rows) > 0:
            known = [self.lowest[None], self.highest[None]] if len(self.lowest) > 0 else []
            every = np.concatenate([*known, rows])
            self.lowest, self.highest = np.fmin.reduce(every), np.fmax.reduce(every)

    def is_outside(self, values: FloatArray) -> NDArray[np.bool_]:
        """Tell which ``values`` (k, d) are outside the range; False where no range is known."""
        if len(self.lowest) == 0:
            return np.zeros(values.shape, np.bool_)
        return np.asarray((values < self.lowest) | (values > self.highest), np.bool_)
