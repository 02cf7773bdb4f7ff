"""The stack of tasks that replaces the recursion of the paper's Algorithms 1 and 2.

A task is one node with the rows that reached it, a segment ``rows[lo:hi]``; segments live on a
stack of their own, whose top a task remembers.
"""

from __future__ import annotations

from ..vector.compiler import Array, kernel

(
    TASK_NODE,
    TASK_PARENT,
    TASK_EDGE,
    TASK_LO,
    TASK_HI,
    TASK_TOP,
    TASK_GROW,
    TASK_FIELDS,
) = range(8)
"""Columns of the stack that replaces recursion: a node, the parent that sent it rows and the edge
between them, its segment of the rows, the end of the segments in use, and whether the structure
may change below."""


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
    """Add a task to the stack and return the stack's new height."""
    tasks[n_tasks, TASK_NODE] = node
    tasks[n_tasks, TASK_PARENT] = parent
    tasks[n_tasks, TASK_EDGE] = edge
    tasks[n_tasks, TASK_LO] = lo
    tasks[n_tasks, TASK_HI] = hi
    tasks[n_tasks, TASK_TOP] = top
    tasks[n_tasks, TASK_GROW] = grow
    return n_tasks + 1
