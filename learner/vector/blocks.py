"""Blocks: rows that are evaluated side by side.

A block is a matrix (d, m) with one row for each variable, so that the innermost loop of a kernel
runs over records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.arrays import FloatArray

from .compiler import Array, kernel
from .lanes import padded

MOST_ROWS, LEAST_ROWS = 256, 64
"""Rows of a block: more are not faster, fewer lose time at the ends of loops."""

VALUES_PER_BLOCK = 4_000_000
"""Nodes times rows above which a block has fewer rows, where the values of all nodes are stored.
malloc reuses arrays below 32 MB, while larger ones are new pages in each call."""

FEW = 2
"""Variables up to which many components are negligible to a whole lane of similar rows, so that
checking for them pays."""


def rows_per_block(n_nodes: int) -> int:
    """Return the rows of a block in which the values of so many nodes are stored."""
    return max(LEAST_ROWS, min(MOST_ROWS, VALUES_PER_BLOCK // n_nodes))


def neighbours_together(Z: FloatArray) -> NDArray[np.intp] | slice:
    """Return an order of the columns of ``Z`` (d, m) in which neighbours are similar.

    Columns that lack the same variables come together. If none lacks any and there are few
    variables, columns with similar values do.
    """
    missing = np.isnan(Z)
    if missing.any():
        return np.lexsort(np.packbits(missing, axis=0))
    return np.argsort(Z[0]) if len(Z) <= FEW else slice(None)


@kernel
def new_block(d: int, m: int) -> Array:
    """Return a block of zeros with room for ``m`` rows of ``d`` variables."""
    return np.zeros((d, padded(m)))


@kernel
def copy_columns(Z: Array, start: int, m: int, block: Array) -> None:
    """Copy ``m`` columns of ``Z`` from ``start`` on to the front of ``block``."""
    for v in range(Z.shape[0]):
        for r in range(m):
            block[v, r] = Z[v, start + r]


@kernel
def is_complete(Z: Array, m: int) -> bool:
    """Whether no value of the first ``m`` columns is missing."""
    complete = True
    for v in range(len(Z)):
        for r in range(m):
            complete &= Z[v, r] == Z[v, r]
    return complete


def row_sums(values: FloatArray) -> FloatArray:
    """Return the sum (m,) of each row of ``values`` (m, d)."""
    total = np.zeros(len(values))
    for column in values.T:
        total += column
    return total
