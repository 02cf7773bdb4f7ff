"""Algorithm 1, parameterUpdate."""

from __future__ import annotations

import numpy as np

from ..network.layout import BACKGROUND, NIL, ROOT
from ..vector.compiler import Array, kernel
from .rule import CLEAR_WIN
from .tasks import TASK_GROW, TASK_HI, TASK_LO, TASK_NODE, TASK_TOP, push


@kernel
def route(
    header: Array,
    nodes: Array,
    edges: Array,
    values: Array,
    rows: Array,
    tasks: Array,
    n_tasks: int,
) -> int:
    """Send each row of a sum node's task to the child with the highest likelihood.

    Weights do not take part, and ties go to the first child (authors' implementation). The
    background takes no part either: it has its own task, and gets the weight of the rows that it
    fits best.
    """
    s, lo, hi = tasks[n_tasks, TASK_NODE], tasks[n_tasks, TASK_LO], tasks[n_tasks, TASK_HI]
    top, grow = tasks[n_tasks, TASK_TOP], tasks[n_tasks, TASK_GROW]
    m = hi - lo
    best, choice = np.full(m, -np.inf), np.zeros(m, np.int64)
    n_children = nodes[s]["n_children"]
    links, ends = np.empty(n_children, np.int64), np.zeros(n_children + 1, np.int64)
    edge = nodes[s]["first_edge"]
    for c in range(n_children):
        links[c] = edge
        child = edges[edge]["child"]
        if child != header[BACKGROUND]:
            for t in range(m):
                value = values[child, rows[lo + t]]
                if value > best[t] + CLEAR_WIN:
                    best[t] = value
                    choice[t] = c
        edge = edges[edge]["next"]
    for t in range(m):
        edges[links[choice[t]]]["weight"] += 1.0
    if s == header[ROOT] and header[BACKGROUND] != NIL:
        for t in range(m):
            if values[header[BACKGROUND], rows[lo + t]] > best[t] + CLEAR_WIN:
                edges[links[choice[t]]]["weight"] -= 1.0
                edges[nodes[s]["first_edge"]]["weight"] += 1.0
    for t in range(m):
        ends[choice[t] + 1] += 1
    for c in range(n_children):
        ends[c + 1] += ends[c]
    for t in range(m):
        rows[top + ends[choice[t]]] = rows[lo + t]
        ends[choice[t]] += 1
    # backwards, so that the stack gives the children their turns in order
    for c in range(n_children - 1, -1, -1):
        begin = ends[c - 1] if c > 0 else 0
        if ends[c] > begin:
            n_tasks = push(
                tasks, n_tasks, edges[links[c]]["child"], s, links[c],
                top + begin, top + ends[c], top + m, grow,
            )  # fmt: skip
    nodes[s]["count"] += m
    return n_tasks
