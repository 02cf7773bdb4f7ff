"""Sums over the fields of rows, whose bits do not depend on the number of rows."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray


def row_sums(values: FloatArray) -> FloatArray:
    """Return the sum (m,) of each row of ``values`` (m, d)."""
    total = np.zeros(len(values))
    for column in values.T:
        total += column
    return total
