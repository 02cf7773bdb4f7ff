"""Algorithm 2, oSLRAU: one mini-batch goes down the network and changes its structure."""

from __future__ import annotations

import numpy as np

from ..network.editing import add_edge, remove_edge
from ..network.layout import BACKGROUND, LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, ROOT, SUM
from ..network.leaves import refresh_multivariate
from ..network.traversal import deepest
from ..vector.compiler import Array, kernel
from .correlations import choose_merges
from .create_mixture import affordable, create_mixture, install_mixture, split_rows
from .create_multivariate_gaussian import join_groups
from .moments import add_counts, update_leaf, update_moments
from .parameter_update import route
from .rule import LearningRule
from .simplification import dissolve_single
from .tasks import TASK_EDGE, TASK_GROW, TASK_HI, TASK_LO, TASK_NODE, TASK_PARENT, TASK_TOP, push


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
