"""Fields that come late: when the network is to be learned anew because of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.state_schema import counts, flags
from faust_oslrau.learner.stored import Stored

from .recent import MOST

EARLY = 512
"""Records of a stream after which a field that is new in it is late."""


class LateFields(Stored):
    """Which fields a stream has, and how long the rows with a late one have to be collected.

    A field is there once half of a learning batch have it; in the first records, once one has.
    """

    schema: ClassVar = {"_there": flags("d"), "_left": counts(1, most=MOST)}
    prefix = "late_"

    def __init__(self) -> None:
        self._there = np.empty(0, np.bool_)
        self._left = 0

    @property
    def are_awaited(self) -> bool:
        """Whether rows have to be kept, to learn them anew."""
        return self._left > 0

    def update(self, rows: FloatArray, n: int) -> bool:
        """Take a learning batch (m, d) that ends with the ``n``-th record of the stream.

        Returns whether there are enough rows with a late field.
        """
        m, d = rows.shape
        before = self._there if self._there.size else np.zeros(d, np.bool_)
        is_enough, self._left = 0 < self._left <= m, max(self._left - m, 0)
        observed = np.count_nonzero(~np.isnan(rows), axis=0)
        self._there = before | (observed > (0 if n <= EARLY else m // 2))
        if n > EARLY and (self._there != before).any():
            self._left = MOST
        return bool(is_enough)

    def restore(self, arrays: Arrays, d: int | None) -> None:
        """Restore a state of ``d`` fields; StateError if it cannot be one."""
        self.read_state(arrays, d=(0, d or 0))
