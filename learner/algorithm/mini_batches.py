"""The driver of the algorithm: rows go through the network in mini-batches."""

from __future__ import annotations

import math

import numpy as np

from ..network.blocks import copy_columns, new_block
from ..network.evaluation import evaluate
from ..network.layout import (
    EDGES_TOP,
    NIL,
    NODES_TOP,
    PRODUCT_SCOPES,
    PRODUCT_STATS,
    PRODUCTS,
    ROOT,
    SCOPES_TOP,
    STATS_TOP,
)
from ..vector.compiler import Array, kernel
from .forgetting import forget
from .pruning import SPARE, prune
from .rule import LearningRule
from .structure_update import update


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
def structure_bound(header: Array) -> tuple[int, int, int, int]:
    """Nodes, edges, scope entries and statistics that one mini-batch can add at the most.

    Each product merges one pair a batch: into a mixture of two products and as many leaves as
    the joint scope has variables.
    """
    n, k = header[PRODUCTS], header[PRODUCT_SCOPES]
    return k + 3 * n, k + 5 * n, k, 2 * header[PRODUCT_STATS]
