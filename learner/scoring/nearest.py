"""Kernels of the distance to neighbours."""

from __future__ import annotations

import numpy as np

from ..vector.compiler import Array, kernel
from ..vector.lanes import WIDTH, absolute, aligned_stack, choose, load, spread, store
from ..vector.math import smaller

UNKNOWN = 1.0
"""Distance in a field whose value is missing on either side."""

ROUNDING = 1e-12
"""Deviation, as a share of the largest value, below which a field does not vary."""

LARGEST_VARIANCE = float(np.finfo(np.float64).max)


@kernel
def mean_nearest(Z: Array, others: Array, n_samples: int, complete: bool, result: Array) -> None:
    """Fill ``result`` (1, m) with mean distances to the nearest row of each sample of ``others``.

    Row i of ``others`` (k, d) belongs to sample i modulo ``n_samples``. Distances from the columns
    of ``Z`` (d, m), in whole lanes, are sums over the fields. ``complete`` says that no value is
    missing; it changes no bits.
    """
    aligned_stack()
    for r in range(0, Z.shape[1], WIDTH):
        total = spread(0.0)
        for first in range(n_samples):
            nearest = spread(np.inf)
            for other in range(first, len(others), n_samples):
                distance = spread(0.0)
                if complete:
                    for v in range(len(Z)):
                        distance = distance + absolute(others[other, v] - load(Z, v, r))
                else:
                    for v in range(len(Z)):
                        gap = absolute(others[other, v] - load(Z, v, r))
                        distance = distance + choose(gap == gap, gap, UNKNOWN)
                nearest = smaller(distance, nearest)
            total = total + nearest
        store(result, 0, r, total / float(n_samples))


@kernel
def fill_variances(rows: Array, result: Array) -> None:
    """Fill ``result`` (d,) with the variance of the observed values of each column (m, d)."""
    for v in range(rows.shape[1]):
        n, largest = 0, 0.0
        for r in range(len(rows)):
            if rows[r, v] == rows[r, v]:
                n += 1
                largest = max(largest, abs(rows[r, v]))
        result[v] = 0.0
        if largest == 0.0:
            continue
        # in units of the largest value no square overflows or underflows
        total, squares = 0.0, 0.0
        for r in range(len(rows)):
            if rows[r, v] == rows[r, v]:
                total += rows[r, v] / largest
        mean = total / n
        for r in range(len(rows)):
            if rows[r, v] == rows[r, v]:
                gap = rows[r, v] / largest - mean
                squares += gap * gap
        if squares >= n * ROUNDING**2:
            result[v] = min(squares / n * largest * largest, LARGEST_VARIANCE)
