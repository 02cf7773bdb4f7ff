"""One mini-batch, as the kernels of the algorithm take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.network.traversal import deepest
from faust_oslrau.learner.vector.compiler import Array, kernel


class MiniBatch(NamedTuple):
    """Rows to learn, with their log-densities.

    Attributes
    ----------
    Z
        The rows as a block (d, >= m).
    values
        Log-density of each node for each row (nodes, >= m), from before the mini-batch.
    segments
        A stack of row numbers. The rows that reach a node are a segment ``segments[lo:hi]``; the
        first segment lists all m rows.
    m
        Number of rows.
    complete
        Whether no value is missing.
    """

    Z: Array
    values: Array
    segments: Array
    m: int
    complete: bool


@kernel
def new_batch(Z: Array, values: Array, m: int, complete: bool) -> MiniBatch:
    """Return a mini-batch whose first segment lists all rows."""
    segments = np.empty(m * (deepest(Z.shape[0]) + 1), np.int64)
    for r in range(m):
        segments[r] = r
    return MiniBatch(Z, values, segments, m, complete)
