"""Kernels that edit the network: nodes, edges, scopes and statistics.

Capacity is not checked here: the driver reserves room for the worst case of a mini-batch before
it starts. Others copy it into new pools, children before parents and without gaps.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel

from .layout import (
    BACKGROUND,
    COUNTERS,
    EDGES_TOP,
    FIRST,
    FREE,
    FREE_EDGE,
    FREE_NODE,
    LAST,
    LEAF,
    N_NODES,
    NIL,
    NODES_TOP,
    ROOT,
    SCOPES_TOP,
    STATS_TOP,
    Pools,
    statistics_length,
)


@kernel
def new_node(pools: Pools, kind: int, scope: int, n_scope: int, before: int) -> int:
    """Take a node from the free list, or the next one of the pool.

    All nodes but univariate leaves are listed for evaluation: just before the node ``before``, or
    last for NIL.
    """
    header, nodes = pools.header, pools.nodes
    i = header[FREE_NODE]
    if i == NIL:
        i = header[NODES_TOP]
        header[NODES_TOP] += 1
    else:
        header[FREE_NODE] = nodes[i]["first_edge"]
    header[N_NODES] += 1
    nodes[i]["kind"] = kind
    nodes[i]["n_children"] = 0
    nodes[i]["first_edge"] = NIL
    nodes[i]["last_edge"] = NIL
    nodes[i]["scope"] = scope
    nodes[i]["n_scope"] = n_scope
    nodes[i]["stats"] = NIL
    nodes[i]["count"] = 0.0
    nodes[i]["observed"] = 0.0
    nodes[i]["mean"] = 0.0
    nodes[i]["variance"] = 0.0
    if kind != LEAF:
        link(header, nodes, i, before)
    return i


@kernel
def free_node(pools: Pools, i: int) -> None:
    """Put a node without edges on the free list; the place of its statistics stays unused."""
    header, nodes = pools.header, pools.nodes
    if nodes[i]["kind"] != LEAF:
        unlink(header, nodes, i)
    nodes[i]["kind"] = FREE
    nodes[i]["first_edge"] = header[FREE_NODE]
    header[FREE_NODE] = i
    header[N_NODES] -= 1


@kernel
def link(header: Array, nodes: Array, i: int, before: int) -> None:
    """List a node for evaluation, before another node or at the end (NIL)."""
    previous = header[LAST] if before == NIL else np.int64(nodes[before]["previous"])
    nodes[i]["previous"] = previous
    nodes[i]["next"] = before
    if previous == NIL:
        header[FIRST] = i
    else:
        nodes[previous]["next"] = i
    if before == NIL:
        header[LAST] = i
    else:
        nodes[before]["previous"] = i


@kernel
def unlink(header: Array, nodes: Array, i: int) -> None:
    """Take a node off the list of nodes to evaluate."""
    previous, following = nodes[i]["previous"], nodes[i]["next"]
    if previous == NIL:
        header[FIRST] = following
    else:
        nodes[previous]["next"] = following
    if following == NIL:
        header[LAST] = previous
    else:
        nodes[following]["previous"] = previous


@kernel
def add_edge(pools: Pools, parent: int, child: int, weight: float) -> None:
    """Append a child to a node."""
    header, nodes, edges = pools.header, pools.nodes, pools.edges
    e = header[FREE_EDGE]
    if e == NIL:
        e = header[EDGES_TOP]
        header[EDGES_TOP] += 1
    else:
        header[FREE_EDGE] = edges[e]["next"]
    edges[e]["child"] = child
    edges[e]["weight"] = weight
    edges[e]["next"] = NIL
    if nodes[parent]["last_edge"] == NIL:
        nodes[parent]["first_edge"] = e
    else:
        edges[nodes[parent]["last_edge"]]["next"] = e
    nodes[parent]["last_edge"] = e
    nodes[parent]["n_children"] += 1


@kernel
def remove_edge(pools: Pools, parent: int, child: int) -> float:
    """Remove a child from its parent and return the weight that it had."""
    header, nodes, edges = pools.header, pools.nodes, pools.edges
    previous, e = NIL, nodes[parent]["first_edge"]
    while edges[e]["child"] != child:
        previous, e = e, edges[e]["next"]
    if previous == NIL:
        nodes[parent]["first_edge"] = edges[e]["next"]
    else:
        edges[previous]["next"] = edges[e]["next"]
    if nodes[parent]["last_edge"] == e:
        nodes[parent]["last_edge"] = previous
    nodes[parent]["n_children"] -= 1
    edges[e]["next"] = header[FREE_EDGE]
    header[FREE_EDGE] = e
    return edges[e]["weight"]


@kernel
def take_statistics(pools: Pools, length: int) -> int:
    """Reserve ``length`` zeros in the pool of statistics and return their offset."""
    header, stats = pools.header, pools.stats
    offset = header[STATS_TOP]
    header[STATS_TOP] += length
    stats[offset : offset + length] = 0.0
    return offset


@kernel
def add_statistics(pools: Pools, i: int, source: int) -> int:
    """Give a node the part of the statistics of ``source`` in its scope; return their offset."""
    nodes, scopes, stats = pools.nodes, pools.scopes, pools.stats
    k, n, old = nodes[source]["n_scope"], nodes[i]["n_scope"], nodes[source]["stats"]
    new = take_statistics(pools, statistics_length(nodes[i]["kind"], n))
    nodes[i]["stats"] = new
    at, position = np.empty(n, np.int64), 0
    for a in range(n):
        while scopes[nodes[source]["scope"] + position] != scopes[nodes[i]["scope"] + a]:
            position += 1
        at[a] = position
    for a in range(n):
        stats[new + a] = stats[old + at[a]]
        stats[new + n + a] = stats[old + k + at[a]]
        for b in range(n):
            stats[new + 2 * n + a * n + b] = stats[old + 2 * k + at[a] * k + at[b]]
    return new


@kernel
def join_scopes(pools: Pools, a: int, b: int) -> int:
    """Write the sorted union of two disjoint scopes to the pool and return its offset."""
    header, nodes, scopes = pools.header, pools.nodes, pools.scopes
    start = header[SCOPES_TOP]
    n, m = nodes[a]["n_scope"], nodes[b]["n_scope"]
    i, j = nodes[a]["scope"], nodes[b]["scope"]
    end_i, end_j = i + n, j + m
    for t in range(start, start + n + m):
        if j == end_j or (i < end_i and scopes[i] < scopes[j]):
            scopes[t] = scopes[i]
            i += 1
        else:
            scopes[t] = scopes[j]
            j += 1
    header[SCOPES_TOP] += n + m
    return start


@kernel
def copy_network(live: Array, old: Pools, new: Pools, n_variables: int) -> None:
    """Copy the nodes ``live``, children before parents, to the pools of a network without any.

    They are listed for evaluation in this order, with edges, statistics and each scope once.
    """
    header, nodes = new.header, new.nodes
    moved, scopes = np.empty(len(old.nodes), np.int64), np.empty(len(old.scopes), np.int64)
    for s in range(len(scopes)):
        scopes[s] = s if s < n_variables else NIL
    for slot in COUNTERS:
        header[slot] = old.header[slot]
    header[NODES_TOP] = len(live)
    for n in range(len(live)):
        moved[live[n]] = n
        nodes[n] = old.nodes[live[n]]
        k, scope, statistics = nodes[n]["n_scope"], nodes[n]["scope"], nodes[n]["stats"]
        if scopes[scope] == NIL:
            scopes[scope] = header[SCOPES_TOP]
            header[SCOPES_TOP] = copy_part(k, old.scopes, scope, new.scopes, scopes[scope])
        nodes[n]["scope"] = scopes[scope]
        if statistics != NIL:
            length, top = statistics_length(nodes[n]["kind"], k), header[STATS_TOP]
            header[STATS_TOP] = copy_part(length, old.stats, statistics, new.stats, top)
            nodes[n]["stats"] = top
        edge = nodes[n]["first_edge"]
        if edge != NIL:
            nodes[n]["first_edge"] = header[EDGES_TOP]
        while edge != NIL:
            e = nodes[n]["last_edge"] = header[EDGES_TOP]
            header[EDGES_TOP] += 1
            new.edges[e]["child"] = moved[old.edges[edge]["child"]]
            new.edges[e]["weight"] = old.edges[edge]["weight"]
            edge = old.edges[edge]["next"]
            new.edges[e]["next"] = NIL if edge == NIL else header[EDGES_TOP]
        if nodes[n]["kind"] != LEAF:
            link(header, nodes, n, NIL)
    for slot in (ROOT, BACKGROUND):
        if old.header[slot] != NIL:
            header[slot] = moved[old.header[slot]]


@kernel
def copy_part(length: int, source: Array, start: int, target: Array, at: int) -> int:
    """Copy a part of one array to another; return where it ends there."""
    for j in range(length):
        target[at + j] = source[start + j]
    return at + length
