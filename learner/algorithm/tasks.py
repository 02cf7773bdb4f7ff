"""What the kernels of the algorithm take: its hyper-parameters, a mini-batch, a stack of tasks.

The stack replaces the recursion of Algorithms 1 and 2. A task is one node with the segment of rows
that reached it. Segments lie on a stack of their own (`MiniBatch.segments`), and a task remembers
where that stack ended.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel

CLEAR_WIN = 1e-9
"""Nats by which a child must be better than the children before it to get a row. Without this
margin, rounding would decide between equal components. Components are equal at the start, and
still equal after a first mini-batch that the units were learned from."""

TASK = np.dtype([(name, "<i8") for name in ("node", "parent", "edge", "lo", "hi", "top", "grow")])
"""One task: the node, the parent that sent it the rows, the edge between them, the bounds of its
segment, the end of the segments in use, and whether the structure may change at and below the
node."""


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


class LearningRule(NamedTuple):
    """Scalar hyper-parameters; ``OSLRAU`` documents each."""

    grow: bool
    corr_threshold: float
    min_count: float
    max_leaf_vars: int
    merges_per_batch: int
    max_nodes: int
    memory: float
    variance_floor: float


@kernel
def push(
    tasks: Array,
    n_tasks: int,
    node: int,
    parent: int,
    edge: int,
    lo: int,
    hi: int,
    top: int,
    grow: int,
) -> int:
    """Add a task to the stack and return the stack's new height.

    ``grow`` is 1 or 0: a boolean would compile this kernel once more.
    """
    task = tasks[n_tasks]
    task["node"], task["parent"], task["edge"] = node, parent, edge
    task["lo"], task["hi"], task["top"], task["grow"] = lo, hi, top, grow
    return n_tasks + 1
