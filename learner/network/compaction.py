"""Kernels that copy the network into new pools, children before parents and without gaps."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel

from .layout import NIL, statistics_length


@kernel
def copy_nodes(
    live: Array, nodes: Array, edges: Array, moved: Array, new_nodes: Array, new_edges: Array
) -> None:
    """Copy the nodes ``live`` to indices ``moved`` of new arrays; sort the edges by node."""
    e = 0
    for i in live:
        new_nodes[moved[i]] = nodes[i]
        edge = nodes[i]["first_edge"]
        if edge != NIL:
            new_nodes[moved[i]]["first_edge"] = e
        while edge != NIL:
            new_edges[e]["child"] = moved[edges[edge]["child"]]
            new_edges[e]["weight"] = edges[edge]["weight"]
            edge = edges[edge]["next"]
            new_edges[e]["next"] = NIL if edge == NIL else e + 1
            new_nodes[moved[i]]["last_edge"] = e
            e += 1


@kernel
def move_scopes(nodes: Array, n: int, n_variables: int, old: Array, new: Array) -> int:
    """Copy the scopes of ``nodes[:n]``, each once, to behind the variables; return the end."""
    moved = np.full(len(old), NIL)
    moved[:n_variables] = np.arange(n_variables)
    new[:n_variables] = old[:n_variables]
    top = n_variables
    for i in range(n):
        start, k = nodes[i]["scope"], nodes[i]["n_scope"]
        if moved[start] == NIL:
            moved[start] = top
            new[top : top + k] = old[start : start + k]
            top += k
        nodes[i]["scope"] = moved[start]
    return top


@kernel
def move_statistics(nodes: Array, n: int, old: Array, new: Array) -> int:
    """Copy the statistics of ``nodes[:n]``, one after the other; return the end."""
    top = 0
    for i in range(n):
        k, start = nodes[i]["n_scope"], nodes[i]["stats"]
        if start == NIL:
            continue
        length = statistics_length(nodes[i]["kind"], k)
        new[top : top + length] = old[start : start + length]
        nodes[i]["stats"] = top
        top += length
    return top
