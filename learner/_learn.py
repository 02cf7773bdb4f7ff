"""Kernels of the downward pass: oSLRAU over mini-batches (paper, Algorithms 1 and 2).

A stack of tasks replaces the recursion. A task is one node with the rows that reached it, a
segment ``rows[lo:hi]``; segments live on a stack of their own, whose top a task remembers.
"""

from __future__ import annotations

import math

import numpy as np

from ._density import copy_columns, evaluate, new_block
from ._jit import kernel
from ._layout import (
    BACKGROUND,
    CLEAR_WIN,
    EDGES_TOP,
    LEAF,
    MERGES_DENIED,
    MULTIVARIATE_LEAF,
    N_NODES,
    NIL,
    NODES_TOP,
    PRODUCT,
    ROOT,
    SCOPES_TOP,
    STATS_TOP,
    SUM,
    TASK_EDGE,
    TASK_GROW,
    TASK_HI,
    TASK_LO,
    TASK_NODE,
    TASK_PARENT,
    TASK_TOP,
    Array,
    LearningRule,
)
from ._merge import (
    MIXTURE_OVERHEAD,
    choose_merges,
    create_mixture,
    dissolve_single,
    install_mixture,
    join_groups,
    split_rows,
    structure_bound,
)
from ._moments import (
    add_counts,
    forget,
    refresh_multivariate,
    update_leaf,
    update_moments,
)
from ._prune import SPARE, prune
from ._structure import add_edge, deepest, remove_edge


@kernel
def learn(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    values: Array,
    tasks: Array,
    start: int,
    batch_size: int,
    complete: bool,
    evaluated: bool,
    rule: LearningRule,
) -> int:
    """Learn rows ``start..`` of ``Z`` (d, n) in mini-batches; return how far it came.

    It stops before a mini-batch that might overrun a pool, for the driver to make room.
    ``complete`` says that no value is missing, ``evaluated`` that ``values`` holds already those
    of the one mini-batch that there is.
    """
    block = new_block(Z.shape[0], batch_size)
    kept = np.arange(len(values) if batch_size > 1 else 0)
    while start < Z.shape[1]:
        if rule.grow and not has_room(header, nodes, edges, scopes, stats):
            return start
        m = min(batch_size, Z.shape[1] - start)
        copy_columns(Z, start, m, block)
        if rule.memory < np.inf:
            forget(header, nodes, edges, stats, math.exp(-m / rule.memory))
            prune(header, nodes, edges, rule.max_nodes - rule.max_nodes // SPARE)
        # rows are routed by the values of children, so that nothing asks for the root's; children
        # that are univariate leaves get theirs with the sum's
        end = header[ROOT] if Z.shape[0] > 1 else NIL
        if not evaluated:
            evaluate(header, nodes, edges, scopes, stats, block, m, values, kept, end)
        update(header, nodes, edges, scopes, stats, block, values, tasks, m, complete, rule)
        start += m
    return start


@kernel
def has_room(header: Array, nodes: Array, edges: Array, scopes: Array, stats: Array) -> bool:
    """Whether every pool can take the worst case of one mini-batch."""
    n_nodes, n_edges, n_scopes, n_stats = structure_bound(header)
    return (
        header[NODES_TOP] + n_nodes <= nodes.shape[0]
        and header[EDGES_TOP] + n_edges <= edges.shape[0]
        and header[SCOPES_TOP] + n_scopes <= scopes.shape[0]
        and header[STATS_TOP] + n_stats <= stats.shape[0]
    )


@kernel
def update(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    values: Array,
    tasks: Array,
    m: int,
    complete: bool,
    rule: LearningRule,
) -> None:
    """Pass the mini-batch ``Z`` (d, >= m), already evaluated, from the root to the leaves."""
    rows = np.empty(m * (deepest(Z.shape[0]) + 1), np.int64)
    for r in range(m):
        rows[r] = r
    n_tasks = 0
    if header[BACKGROUND] != NIL:
        n_tasks = push(tasks, n_tasks, header[BACKGROUND], NIL, NIL, 0, m, m, False)
    n_tasks = push(tasks, n_tasks, header[ROOT], NIL, NIL, 0, m, m, rule.grow)
    while n_tasks > 0:
        n_tasks -= 1
        i = tasks[n_tasks, TASK_NODE]
        lo, hi = tasks[n_tasks, TASK_LO], tasks[n_tasks, TASK_HI]
        kind = nodes[i]["kind"]
        if kind == SUM:
            n_tasks = route(header, nodes, edges, values, rows, tasks, n_tasks)
        elif kind == LEAF:
            update_leaf(i, nodes, Z, rows, lo, hi, rule.variance_floor)
        elif kind == MULTIVARIATE_LEAF:
            k, scope, block = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
            update_moments(stats, block, scopes, scope, k, Z, rows, lo, hi, complete)
            add_counts(stats, block, scopes, scope, k, Z, rows, lo, hi, complete)
            nodes[i]["count"] += hi - lo
            refresh_multivariate(i, nodes, stats, rule.variance_floor)
        elif kind == PRODUCT:
            n_tasks = update_product(
                header, nodes, edges, scopes, stats, Z, values, rows, tasks, n_tasks,
                complete, rule,
            )  # fmt: skip


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


@kernel
def update_product(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    values: Array,
    rows: Array,
    tasks: Array,
    n_tasks: int,
    complete: bool,
    rule: LearningRule,
) -> int:
    """Update a product's statistics, merge its most correlated children, pass the rows on."""
    i, parent = tasks[n_tasks, TASK_NODE], tasks[n_tasks, TASK_PARENT]
    place = tasks[n_tasks, TASK_EDGE]
    lo, hi, top = tasks[n_tasks, TASK_LO], tasks[n_tasks, TASK_HI], tasks[n_tasks, TASK_TOP]
    grow = tasks[n_tasks, TASK_GROW]
    k, scope, block = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    update_moments(stats, block, scopes, scope, k, Z, rows, lo, hi, complete)
    owner, group, leaves = np.empty((3, k), np.int64)
    n_joined, a, b = 0, NIL, NIL
    if grow and nodes[i]["count"] >= rule.min_count and nodes[i]["n_children"] > 1:
        n_joined, a, b = choose_merges(i, nodes, edges, scopes, stats, rule, owner, group)
    if a != NIL and not affordable(header, nodes, a, b, rule.max_nodes):
        a, b = NIL, NIL
    if n_joined > 0:
        n_leaves = join_groups(
            header, nodes, edges, scopes, stats, Z, rows, i, owner, group, lo, hi, complete,
            rule.variance_floor, leaves,
        )  # fmt: skip
    elif a != NIL:
        remove_edge(header, nodes, edges, i, a)
        remove_edge(header, nodes, edges, i, b)
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            update_leaf(child, nodes, Z, rows, lo, hi, rule.variance_floor)
        else:
            n_tasks = push(tasks, n_tasks, child, i, edge, lo, hi, top, grow)
        edge = edges[edge]["next"]
    first, second, share = NIL, NIL, 0
    if a != NIL:
        first, second = create_mixture(
            header, nodes, edges, scopes, stats, Z, rows, i, a, b, lo, hi, rule.variance_floor
        )
        share = split_rows(nodes, edges, Z, values, rows, a, b, second, lo, hi, top)
        middle, end = top + share, top + hi - lo
        if top < middle:
            n_tasks = push(tasks, n_tasks, first, NIL, NIL, top, middle, end, False)
        if middle < end:
            n_tasks = push(tasks, n_tasks, second, NIL, NIL, middle, end, end, False)
    add_counts(stats, block, scopes, scope, k, Z, rows, lo, hi, complete)
    nodes[i]["count"] += hi - lo
    if n_joined > 0:
        for c in range(n_leaves):
            add_edge(header, nodes, edges, i, leaves[c], 1.0)
        dissolve_single(header, nodes, edges, i, place)
    elif a != NIL:
        install_mixture(header, nodes, edges, i, parent, place, first, second, share)
    return n_tasks


@kernel
def affordable(header: Array, nodes: Array, a: int, b: int, max_nodes: int) -> bool:
    """Whether the node budget allows a mixture over the scopes of ``a`` and ``b``."""
    k = nodes[a]["n_scope"] + nodes[b]["n_scope"]
    if header[N_NODES] + k + MIXTURE_OVERHEAD > max_nodes:
        header[MERGES_DENIED] += 1
        return False
    return True
