"""The driver of the algorithm: rows are learned in mini-batches."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.network.evaluation import evaluate
from faust_oslrau.learner.network.layout import (
    EDGES_TOP,
    NIL,
    NODES_TOP,
    PRODUCT,
    ROOT,
    SCOPES_TOP,
    STATS_TOP,
    Pools,
    deepest,
    moments_length,
)
from faust_oslrau.learner.vector.blocks import copy_columns, new_block
from faust_oslrau.learner.vector.compiler import Array, kernel

from .pruning import SPARE, forget, prune
from .structure_update import oslrau
from .tasks import TASK, LearningRule, MiniBatch


@kernel
def learn(
    pools: Pools,
    Z: Array,
    values: Array,
    start: int,
    batch_size: int,
    complete: bool,
    evaluated: bool,
    rule: LearningRule,
) -> int:
    """Learn the columns of ``Z`` (d, n) from ``start`` on; return the column where it stopped.

    It learns in mini-batches, and stops before one that might overrun a pool, so that the caller
    can make room. ``complete`` says that no value is missing. ``values`` (nodes, >= batch_size) is
    scratch, unless ``evaluated`` says that it holds the log-densities of the nodes for the only
    mini-batch.
    """
    block = new_block(Z.shape[0], batch_size)
    tasks = np.empty(len(pools.nodes), TASK)
    value_rows = np.arange(len(values) if batch_size > 1 else 0)
    while start < Z.shape[1]:
        if rule.grow and not has_room(pools):
            return start
        m = min(batch_size, Z.shape[1] - start)
        copy_columns(Z, start, m, block)
        make_way(pools, m, rule)
        # Rows are sent to children by the children's values, so that the root's is not needed.
        # Only a sum evaluates its univariate leaves: with one variable the root must take part.
        end = pools.header[ROOT] if Z.shape[0] > 1 else NIL
        if not evaluated:
            evaluate(pools, block, m, values, value_rows, end)
        segments = np.empty(m * (deepest(Z.shape[0]) + 1), np.int64)
        for i in range(m):
            segments[i] = i
        oslrau(pools, MiniBatch(block, values, segments, m, complete), tasks, rule)
        start += m
    return start


@kernel
def forget_and_evaluate(pools: Pools, Z: Array, values: Array, rule: LearningRule) -> None:
    """Do what learning a mini-batch ``Z`` (d, m) begins with, and evaluate the root, too.

    ``values`` (nodes, >= m) become the log-densities of the nodes, in whole lanes.
    """
    d, m = Z.shape
    block = new_block(d, max(m, 2))
    copy_columns(Z, 0, m, block)
    make_way(pools, m, rule)
    evaluate(pools, block, max(m, 2), values, np.arange(len(values)), NIL)


@kernel
def make_way(pools: Pools, m: int, rule: LearningRule) -> None:
    """Forget and prune before ``m`` records are learned."""
    if rule.memory < np.inf:
        forget(pools, math.exp(-m / rule.memory))
        prune(pools, rule.max_nodes - rule.max_nodes // SPARE)


@kernel
def has_room(pools: Pools) -> bool:
    """Whether every pool has room for the worst case of one mini-batch."""
    header, nodes, edges, scopes, stats = pools
    n_nodes, n_edges, n_scopes, n_stats = structure_bound(pools)
    return (
        header[NODES_TOP] + n_nodes <= nodes.shape[0]
        and header[EDGES_TOP] + n_edges <= edges.shape[0]
        and header[SCOPES_TOP] + n_scopes <= scopes.shape[0]
        and header[STATS_TOP] + n_stats <= stats.shape[0]
    )


@kernel
def structure_bound(pools: Pools) -> tuple[int, int, int, int]:
    """Return the most nodes, edges, scope entries and statistics that one mini-batch can add.

    Each product merges one pair of children in a mini-batch: into a mixture of two products, with
    as many leaves as the joint scope has variables.
    """
    n, k, statistics = 0, 0, 0
    for i in range(pools.header[NODES_TOP]):
        if pools.nodes[i]["kind"] == PRODUCT:
            n += 1
            k += pools.nodes[i]["n_scope"]
            statistics += moments_length(pools.nodes[i]["n_scope"])
    return k + 3 * n, k + 5 * n, k, 2 * statistics
