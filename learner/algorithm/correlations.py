"""Algorithm 2, the correlations: which children of a product to merge."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.network.layout import NIL, Pools
from faust_oslrau.learner.vector.compiler import Array, kernel

from .tasks import LearningRule

CORRELATION_VARIANCE_FLOOR = 1e-4
"""Least variance that a correlation is computed with, in standardised units (authors' code)."""


@kernel
def choose_merges(
    pools: Pools, p: int, rule: LearningRule, owner: Array, group: Array
) -> tuple[int, int, int]:
    """Choose which children of product ``p`` to merge, the most correlated ones first.

    For each variable of the product's scope, ``owner`` (k,) gets the child that holds it, and
    ``group`` (k,) the child that stands for all those that are to share a multivariate leaf.
    Returns the number of merges into leaves, and two children to merge into a mixture: NIL and NIL,
    unless the first pair is too large for a leaf.
    """
    nodes, stats = pools.nodes, pools.stats
    k = nodes[p]["n_scope"]
    matrix = nodes[p]["stats"] + 2 * k
    find_owners(pools, p, owner)
    inverse = np.empty(k)
    for a in range(k):
        group[a] = owner[a]
        variance = max(stats[matrix + a * k + a], CORRELATION_VARIANCE_FLOOR)
        inverse[a] = 1.0 / math.sqrt(variance)
    for n_joined in range(rule.merges_per_batch):
        best, first, second = -1.0, NIL, NIL
        for a in range(k):
            for b in range(a + 1, k):
                correlation = abs(stats[matrix + a * k + b]) * inverse[a] * inverse[b]
                if correlation > best and group[a] != group[b]:
                    best, first, second = correlation, group[a], group[b]
        if best < rule.corr_threshold:
            return n_joined, NIL, NIL
        if joint_size(nodes, group, first, second) > rule.max_leaf_vars:
            return (0, first, second) if n_joined == 0 else (n_joined, NIL, NIL)
        for a in range(k):
            if group[a] == second:
                group[a] = first
    return rule.merges_per_batch, NIL, NIL


@kernel
def find_owners(pools: Pools, p: int, owner: Array) -> None:
    """Fill ``owner`` with the child of product ``p`` that holds each variable of its scope."""
    nodes, edges, scopes = pools.nodes, pools.edges, pools.scopes
    scope = nodes[p]["scope"]
    edge = nodes[p]["first_edge"]
    while edge != NIL:
        child, position = edges[edge]["child"], 0
        for b in range(nodes[child]["n_scope"]):
            while scopes[scope + position] != scopes[nodes[child]["scope"] + b]:
                position += 1
            owner[position] = child
        edge = edges[edge]["next"]


@kernel
def joint_size(nodes: Array, group: Array, first: int, second: int) -> int:
    """Count the variables of two groups; more than any limit if one of them is not a leaf."""
    if nodes[first]["n_children"] > 0 or nodes[second]["n_children"] > 0:
        return 2**31 - 1
    size = 0
    for a in range(len(group)):
        size += group[a] == first or group[a] == second
    return size
