"""One mini-batch, as the kernels of the algorithm take it."""

from __future__ import annotations

from typing import NamedTuple

from faust_oslrau.learner.vector.compiler import Array


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
