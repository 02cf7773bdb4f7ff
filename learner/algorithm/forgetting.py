"""Forgetting: a model with a memory gives old records less weight. This is not in the paper."""

from __future__ import annotations

from faust_oslrau.learner.network.layout import FREE, LEAF, NIL, NODES_TOP, SUM, Pools
from faust_oslrau.learner.vector.compiler import kernel


@kernel
def forget(pools: Pools, share: float) -> None:
    """Reduce every count, and with it the weight of the past, to a ``share`` of itself."""
    header, nodes, edges, _, stats = pools
    for i in range(header[NODES_TOP]):
        kind = nodes[i]["kind"]
        if kind == FREE:
            continue
        nodes[i]["count"] *= share
        nodes[i]["observed"] *= share
        if kind == SUM:
            edge = nodes[i]["first_edge"]
            while edge != NIL:
                edges[edge]["weight"] = (edges[edge]["weight"] - 1.0) * share + 1.0
                edge = edges[edge]["next"]
        elif kind != LEAF:
            k, offset = nodes[i]["n_scope"], nodes[i]["stats"]
            for a in range(k):
                stats[offset + k + a] *= share
                for b in range(a):
                    stats[offset + 2 * k + a * k + b] *= share
