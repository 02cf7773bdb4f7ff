"""Which share of the recent records equals a record.

Where values repeat, the same record has a slightly other score each time, as the model learns. So
its rank among recent scores says nothing of how often it comes. This share does: a record is at
least as usual as it is frequent.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.vector.compiler import Array, kernel

from .calibration import ranks

FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio, odd."""

SHIFT, LOWEST_BITS = np.uint64(32), np.uint64(11)

ZERO = np.uint64(0)
"""Bits of a zero, whatever its sign."""

MISSING = np.uint64(0x7FF8000000000000)
"""Bits of a missing value: there is more than one NaN."""


def marks(rows: FloatArray, slots: IntArray) -> FloatArray:
    """Return numbers (m,) that are equal where rows (m, d) and slots (m,) are.

    And, but for one pair in 2**53, nowhere else.
    """
    result = np.empty(len(rows))
    rows = np.ascontiguousarray(rows)
    fill_marks(rows, rows.view(np.uint64), slots, result)
    return result


@kernel
def share_alike(ascending: Array, mark: Array) -> Array:
    """Return the share (m,) of ordered marks (n,), with the record itself, equal to each mark."""
    alike = ranks(ascending, mark, True) - ranks(ascending, mark, False)
    return alike / (len(ascending) + 1.0)


@kernel
def fill_marks(rows: Array, bits: Array, slots: Array, result: Array) -> None:
    """Fill ``result`` (m,) with a hash of each row (m, d), of these ``bits``, and its slot.

    It is in [0, 1).
    """
    m, d = rows.shape
    for i in range(m):
        h = np.uint64(slots[i]) * FACTOR
        for j in range(d):
            value = bits[i, j]
            if rows[i, j] == 0.0:
                value = ZERO
            elif rows[i, j] != rows[i, j]:
                value = MISSING
            h = (h ^ value) * FACTOR
            h ^= h >> SHIFT
        result[i] = np.float64((h * FACTOR) >> LOWEST_BITS) / 9007199254740992.0
