"""Algorithm 2, oSLRAU: a mini-batch goes down the network and changes parameters and structure."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.network.editing import add_edge, remove_edge
from faust_oslrau.learner.network.layout import (
    BACKGROUND,
    LEAF,
    MULTIVARIATE_LEAF,
    NIL,
    PRODUCT,
    ROOT,
    SUM,
    Pools,
)
from faust_oslrau.learner.vector.compiler import Array, kernel

from .correlations import choose_merges
from .create_mixture import affordable, create_mixture, install_mixture, split_rows
from .create_multivariate_gaussian import create_multivariate_gaussians
from .moments import add_counts, update_leaf, update_moments
from .parameter_update import update_multivariate_leaf, update_sum
from .simplification import dissolve_product
from .tasks import LearningRule, MiniBatch, push


@kernel
def oslrau(pools: Pools, batch: MiniBatch, tasks: Array, rule: LearningRule) -> None:
    """Pass a mini-batch, which is already evaluated, from the root to the leaves.

    Every row updates the background, and one child of each sum that it reaches. ``tasks`` is an
    empty stack.
    """
    header, nodes, m = pools.header, pools.nodes, batch.m
    n_tasks = 0
    if header[BACKGROUND] != NIL:
        n_tasks = push_background(pools, tasks, n_tasks, m)
    n_tasks = push(tasks, n_tasks, header[ROOT], NIL, NIL, 0, m, m, int(rule.grow))
    while n_tasks > 0:
        n_tasks -= 1
        i, lo, hi = tasks[n_tasks]["node"], tasks[n_tasks]["lo"], tasks[n_tasks]["hi"]
        kind = nodes[i]["kind"]
        if kind == SUM:
            n_tasks = update_sum(pools, batch, tasks, n_tasks)
        elif kind == LEAF:
            update_leaf(i, nodes, batch.Z, batch.segments, lo, hi, rule.variance_floor)
        elif kind == MULTIVARIATE_LEAF:
            update_multivariate_leaf(pools, batch, i, lo, hi, rule.variance_floor)
        elif kind == PRODUCT:
            n_tasks = update_product(pools, batch, tasks, n_tasks, rule)


@kernel
def push_background(pools: Pools, tasks: Array, n_tasks: int, m: int) -> int:
    """Give the leaves of the background ``m`` rows to learn; return the height of the stack.

    A product of them needs no statistics, as it never grows.
    """
    header, nodes, edges = pools.header, pools.nodes, pools.edges
    background = header[BACKGROUND]
    if nodes[background]["kind"] != PRODUCT:
        return push(tasks, n_tasks, background, NIL, NIL, 0, m, m, 0)
    nodes[background]["count"] += m
    edge = nodes[background]["first_edge"]
    while edge != NIL:
        n_tasks = push(tasks, n_tasks, edges[edge]["child"], NIL, NIL, 0, m, m, 0)
        edge = edges[edge]["next"]
    return n_tasks


@kernel
def update_product(
    pools: Pools, batch: MiniBatch, tasks: Array, n_tasks: int, rule: LearningRule
) -> int:
    """Update a product's statistics, merge its most correlated children, pass the rows on.

    Returns the height of the stack of tasks.
    """
    _, nodes, edges, scopes, stats = pools
    Z, segments = batch.Z, batch.segments
    task = tasks[n_tasks]  # the first push overwrites it
    i, parent, place, grow = task["node"], task["parent"], task["edge"], task["grow"]
    lo, hi, top, k = task["lo"], task["hi"], task["top"], nodes[i]["n_scope"]
    update_moments(i, nodes, scopes, stats, Z, segments, lo, hi, batch.complete)
    owner, group, leaves = np.empty((3, k), np.int64)
    n_joined, a, b = 0, NIL, NIL
    if grow and nodes[i]["count"] >= rule.min_count and nodes[i]["n_children"] > 1:
        n_joined, a, b = choose_merges(pools, i, rule, owner, group)
    if a != NIL and not affordable(pools.header, nodes, a, b, rule.max_nodes):
        a, b = NIL, NIL
    if n_joined > 0:
        n_leaves = create_multivariate_gaussians(
            pools, batch, i, lo, hi, owner, group, leaves, rule.variance_floor
        )
    elif a != NIL:
        remove_edge(pools, i, a)
        remove_edge(pools, i, b)
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            update_leaf(child, nodes, Z, segments, lo, hi, rule.variance_floor)
        else:
            n_tasks = push(tasks, n_tasks, child, i, edge, lo, hi, top, grow)
        edge = edges[edge]["next"]
    first, second, share = NIL, NIL, 0
    if a != NIL:
        first, second = create_mixture(pools, batch, i, a, b, lo, hi, rule.variance_floor)
        share = split_rows(pools, batch, a, b, second, lo, hi, top)
        middle, end = top + share, top + hi - lo
        if top < middle:
            n_tasks = push(tasks, n_tasks, first, NIL, NIL, top, middle, end, 0)
        if middle < end:
            n_tasks = push(tasks, n_tasks, second, NIL, NIL, middle, end, end, 0)
    add_counts(i, nodes, scopes, stats, Z, segments, lo, hi, batch.complete)
    nodes[i]["count"] += hi - lo
    if n_joined > 0:
        for c in range(n_leaves):
            add_edge(pools, i, leaves[c], 1.0)
        dissolve_product(pools, i, place)
    elif a != NIL:
        install_mixture(pools, i, parent, place, first, second, share)
    return n_tasks
