"""Which children of a product to merge: those that hold the most correlated variables."""

from __future__ import annotations

import math

import numpy as np

from ..network.layout import NIL
from ..vector.compiler import Array, kernel
from .rule import LearningRule

CORRELATION_VARIANCE_FLOOR = 1e-4
"""Variances below it, in standardised units, are noise to a correlation (authors' code)."""


@kernel
def choose_merges(
    p: int,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    rule: LearningRule,
    owner: Array,
    group: Array,
) -> tuple[int, int, int]:
    """Choose which children of product ``p`` to join, the most correlated first (Algorithm 2).

    For each position of the product's scope, ``owner`` gets the child that holds the variable
    and ``group`` one child for all of those that are to share a multivariate leaf. Returns the
    number of joints, and the two children of a mixture if the first pair is too large for a
    leaf.
    """
    k = nodes[p]["n_scope"]
    matrix = nodes[p]["stats"] + 2 * k
    find_owners(p, nodes, edges, scopes, owner)
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
def find_owners(p: int, nodes: Array, edges: Array, scopes: Array, owner: Array) -> None:
    """Fill ``owner`` with the child of product ``p`` that holds each variable of its scope."""
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
    """Count the variables of two groups; past all bounds if one of them is no leaf."""
    if nodes[first]["n_children"] > 0 or nodes[second]["n_children"] > 0:
        return 2**31 - 1
    size = 0
    for a in range(len(group)):
        size += group[a] == first or group[a] == second
    return size
