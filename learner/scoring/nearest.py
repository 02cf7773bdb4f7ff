"""The kernel that measures how far rows are from near ones of few others."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    absolute,
    aligned_stack,
    choose,
    load,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import larger, smaller

UNKNOWN = 1.0
"""What a field counts whose value is missing on either side."""


FARTHEST = 4.0
"""Deviations that a field counts at the most: beyond, it is far, and one field must not decide."""


RANK = 4
"""The neighbour whose distance counts, from the nearest. A group of anomalies has to be an eighth
of the records to be its own fourth neighbour among 32."""


ROUNDING = 1e-12
"""Deviation, as a share of the largest value, below which a field does not vary."""


LARGEST = float(np.finfo(np.float64).max)


@kernel
def mean_near(
    rows: Array, scale: Array, others: Array, n_blocks: int, others_complete: bool, result: Array
) -> None:
    """Fill ``result`` (m,) with mean distances to the fourth nearest row of each block.

    The ``others`` (k, d), which are scaled, are dealt out to the blocks by turns; of a block of
    fewer than four the farthest row counts. Distances from the ``rows`` (m, d) times ``scale`` (d,)
    are sums over the fields. The bits are the same whether some values are missing or none is.
    """
    aligned_stack()
    m, d = rows.shape
    Z, found = np.zeros((d, WIDTH)), np.empty((1, WIDTH))
    rank = min(RANK, len(others) // n_blocks)
    # as if so many rows were nearer than any
    start = [-np.inf if i < RANK - rank else np.inf for i in range(RANK)]
    for r in range(0, m, WIDTH):
        n, total, complete = min(WIDTH, m - r), spread(0.0), others_complete
        for i in range(n):
            for v in range(d):
                Z[v, i] = rows[r + i, v] * scale[v]
                complete &= Z[v, i] == Z[v, i]
        for first in range(n_blocks):
            a, b, c, e = spread(start[0]), spread(start[1]), spread(start[2]), spread(start[3])
            for other in range(first, len(others), n_blocks):
                distance = spread(0.0)
                if complete:
                    for v in range(d):
                        gap = absolute(others[other, v] - load(Z, v, 0))
                        distance = distance + smaller(gap, FARTHEST)
                else:
                    for v in range(d):
                        gap = absolute(others[other, v] - load(Z, v, 0))
                        distance = distance + choose(gap == gap, smaller(gap, FARTHEST), UNKNOWN)
                e = smaller(e, larger(c, distance))
                c = smaller(c, larger(b, distance))
                b = smaller(b, larger(a, distance))
                a = smaller(a, distance)
            total = total + e
        store(found, 0, 0, total / float(n_blocks))
        result[r : r + n] = found[0, :n]


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
            result[v] = min(squares / n * largest * largest, LARGEST)
