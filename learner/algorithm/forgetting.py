"""Forgetting, which the paper does not have: a model with a memory weighs old records less."""

from __future__ import annotations

from ..network.layout import FREE, LEAF, NIL, NODES_TOP, SUM
from ..vector.compiler import Array, kernel


@kernel
def forget(header: Array, nodes: Array, edges: Array, stats: Array, keep: float) -> None:
    """Let every count, and with it the weight of the past, shrink to the share ``keep``."""
    for i in range(header[NODES_TOP]):
        kind = nodes[i]["kind"]
        if kind == FREE:
            continue
        nodes[i]["count"] *= keep
        nodes[i]["observed"] *= keep
        if kind == SUM:
            edge = nodes[i]["first_edge"]
            while edge != NIL:
                edges[edge]["weight"] = (edges[edge]["weight"] - 1.0) * keep + 1.0
                edge = edges[edge]["next"]
        elif kind != LEAF:
            k, block = nodes[i]["n_scope"], nodes[i]["stats"]
            for a in range(k):
                stats[block + k + a] *= keep
                for b in range(a):
                    stats[block + 2 * k + a * k + b] *= keep
