"""Sums over the fields of rows, whose bits do not depend on the number of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def row_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum (m,) of each row of ``values`` (m, d)."""
    total = np.zeros(len(values))
    for column in values.T:
        total += column
    return total
