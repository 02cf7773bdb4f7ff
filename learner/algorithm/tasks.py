"""The stack of tasks that replaces the recursion of Algorithms 1 and 2.

A task is one node with the segment of rows that reached it. Segments lie on a stack of their own
(`MiniBatch.segments`), and a task remembers where that stack ended.
"""

from __future__ import annotations

from faust_oslrau.learner.vector.compiler import Array, kernel

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
"""Columns of the stack: the node, the parent that sent it the rows, the edge between them, the
bounds of its segment, the end of the segments in use, and whether the structure may change at and
below the node."""


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
    tasks[n_tasks, TASK_NODE] = node
    tasks[n_tasks, TASK_PARENT] = parent
    tasks[n_tasks, TASK_EDGE] = edge
    tasks[n_tasks, TASK_LO] = lo
    tasks[n_tasks, TASK_HI] = hi
    tasks[n_tasks, TASK_TOP] = top
    tasks[n_tasks, TASK_GROW] = grow
    return n_tasks + 1
