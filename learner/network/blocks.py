"""Blocks: rows that are evaluated side by side.

A block is a matrix (d, m) with one row for each variable, so that the innermost loop of a kernel
runs over records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..vector.compiler import Array, kernel
from ..vector.lanes import padded

MOST_ROWS, LEAST_ROWS = 256, 64
"""Rows evaluated at a time: more are no quicker, fewer lose time at the ends of loops."""


VALUES_PER_BLOCK = 4_000_000
"""Values of nodes, over all rows, from which on fewer rows are evaluated at a time where they are
kept: malloc keeps arrays below 32 MB for the next call, while larger ones are fresh pages each
time."""


FEW = 2
"""Variables up to which much of a mixture is nothing to rows side by side, once these are alike:
enough that it is worth a look."""


def rows_per_block(n_nodes: int) -> int:
    """Rows to evaluate at a time where so many nodes keep their values."""
    return max(LEAST_ROWS, min(MOST_ROWS, VALUES_PER_BLOCK // n_nodes))


def neighbours_together(Z: NDArray[np.float64]) -> NDArray[np.intp] | slice:
    """Order of the columns of ``Z`` (d, m) in which those side by side are more or less alike.

    Those that lack the same variables meet, and, of few variables, those near each other.
    """
    missing = np.isnan(Z)
    if Z.shape[1] > 1 and missing.any():
        return np.lexsort(np.packbits(missing, axis=0))
    return np.argsort(Z[0]) if len(Z) <= FEW else slice(None)


@kernel
def new_block(d: int, m: int) -> Array:
    """Room for ``m`` rows of ``d`` variables, side by side."""
    return np.zeros((d, padded(m)))


@kernel
def copy_columns(Z: Array, start: int, m: int, block: Array) -> None:
    """Copy ``m`` columns of ``Z`` from ``start`` on to the front of ``block``."""
    for v in range(Z.shape[0]):
        for r in range(m):
            block[v, r] = Z[v, start + r]
