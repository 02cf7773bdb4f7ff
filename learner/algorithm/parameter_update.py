"""Algorithm 1, parameterUpdate: weights of sums and statistics of leaves follow the rows.

The algorithm is the part of Algorithm 2 that leaves the structure alone. `structure_update.oslrau`
runs both: where the structure may not grow, it is Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.network.layout import BACKGROUND, NIL, ROOT, Pools
from faust_oslrau.learner.network.leaves import refresh_multivariate
from faust_oslrau.learner.vector.compiler import Array, kernel

from .expectation_maximisation import is_mixture
from .moments import add_counts, update_moments
from .tasks import CLEAR_WIN, MiniBatch, push


@kernel
def update_sum(pools: Pools, batch: MiniBatch, tasks: Array, n_tasks: int) -> int:
    """Send each row of a sum's task to the child with the highest likelihood, and count it there.

    Weights do not take part, and ties go to the first child (authors' implementation). The
    background gets no rows here, as it has a task of its own. Its weight counts the rows that it
    fits best. Mixtures get none, as they have learned all. Returns the height of the stack of
    tasks.
    """
    header, nodes, edges = pools.header, pools.nodes, pools.edges
    values, segments = batch.values, batch.segments
    task = tasks[n_tasks]  # the first push overwrites it
    s, lo, hi, top, grow = task["node"], task["lo"], task["hi"], task["top"], task["grow"]
    m = hi - lo
    best, choice, rows = np.full(m, -np.inf), np.zeros(m, np.int64), segments[lo:hi]
    n_children = nodes[s]["n_children"]
    links, ends = np.empty(n_children, np.int64), np.zeros(n_children + 1, np.int64)
    edge = nodes[s]["first_edge"]
    for c in range(n_children):
        links[c] = edge
        child = edges[edge]["child"]
        if child != header[BACKGROUND] and not is_mixture(pools, child):
            own = values[child] if lo == 0 else values[child][rows]  # the first are all, in order
            for t in range(m):
                better = own[t] > best[t] + CLEAR_WIN
                best[t] = own[t] if better else best[t]
                choice[t] = c if better else choice[t]
        edge = edges[edge]["next"]
    for t in range(m):
        edges[links[choice[t]]]["weight"] += 1.0
    if s == header[ROOT] and header[BACKGROUND] != NIL:
        for t in range(m):
            if values[header[BACKGROUND], rows[t]] > best[t] + CLEAR_WIN:
                edges[links[choice[t]]]["weight"] -= 1.0
                edges[nodes[s]["first_edge"]]["weight"] += 1.0
    # sort the rows by child, behind the segments in use
    for t in range(m):
        ends[choice[t] + 1] += 1
    for c in range(n_children):
        ends[c + 1] += ends[c]
    for t in range(m):
        segments[top + ends[choice[t]]] = rows[t]
        ends[choice[t]] += 1
    # backwards, so that the stack gives the children their turns in order
    for c in range(n_children - 1, -1, -1):
        begin = ends[c - 1] if c > 0 else 0
        if ends[c] > begin:
            n_tasks = push(
                tasks, n_tasks, edges[links[c]]["child"], s, links[c],
                top + begin, top + ends[c], top + m, grow,
            )  # fmt: skip
    nodes[s]["count"] += m
    return n_tasks


@kernel
def update_multivariate_leaf(
    pools: Pools, batch: MiniBatch, i: int, lo: int, hi: int, variance_floor: float
) -> None:
    """Update the mean and covariance of a multivariate leaf, and what its density needs."""
    nodes, scopes, stats = pools.nodes, pools.scopes, pools.stats
    update_moments(i, nodes, scopes, stats, batch.Z, batch.segments, lo, hi, batch.complete)
    add_counts(i, nodes, scopes, stats, batch.Z, batch.segments, lo, hi, batch.complete)
    nodes[i]["count"] += hi - lo
    refresh_multivariate(i, nodes, stats, variance_floor)
