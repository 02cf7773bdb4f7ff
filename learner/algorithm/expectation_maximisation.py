"""Mixtures beside the grown components learn by expectation-maximisation, one mini-batch at a time.

They are sums below the root: of Gaussians over all variables, or of products of mixtures of single
variables. Each learns all records, by shares: the posterior probabilities of its components given a
record, from before the mini-batch. Means and variances are running averages over the records, as in
equations 3 and 4, but a record counts by its share.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.network.evaluation import evaluate
from faust_oslrau.learner.network.layout import (
    BACKGROUND,
    MULTIVARIATE_LEAF,
    NIL,
    PRODUCT,
    ROOT,
    SUM,
    Pools,
    total_weight,
)
from faust_oslrau.learner.network.leaves import gaussian, refresh_leaf, refresh_multivariate
from faust_oslrau.learner.vector.blocks import copy_columns, is_complete, new_block
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    aligned_stack,
    choose,
    fma,
    load,
    padded,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import exp_bounded

from .moments import multiply_pairs
from .tasks import MiniBatch

LEAST_SHARE = 1e-2
"""Smaller shares of a record in a component are not learned."""

LATEST = 512.0
"""Records that the shares of mixtures in the root follow. Shares of all records would be closer to
those with which the mixtures began."""

COST = 0.05
"""Share of each record that a mixture has to give up, so that one that adds little has none."""

WEIGHT_PRIOR = 3.0
"""Records' worth of the weights of a variable's leaves in a product, while these are fitted."""

LEAST_REST = 1e-9
"""Least share of the grown components in the root."""


@kernel
def is_mixture(pools: Pools, child: int) -> bool:
    """Whether a child of the root is a mixture beside the grown components."""
    return bool(pools.header[BACKGROUND] != NIL and pools.nodes[child]["kind"] == SUM)


@kernel
def learn_mixtures(
    pools: Pools, Z: Array, values: Array, complete: bool, variance_floor: float
) -> None:
    """Let all mixtures learn a mini-batch ``Z`` (d, m), given the log-densities of all nodes.

    ``values`` (nodes, >= m) have columns for whole lanes. ``complete`` says that no value is
    missing. Weights of grown components are counts of records; those of mixtures are multiples of
    their sum, such that the share of each mixture is its mean share of records: of all that it has
    learned, with three made-up ones of which each part has one, and later of some `LATEST`.
    """
    d, m = Z.shape
    block, shares = new_block(d, max(m, 2)), np.zeros((2, padded(max(m, 2))))
    copy_columns(Z, 0, m, block)
    batch = MiniBatch(block, values, np.empty(0, np.int64), m, complete)
    nodes, edges, root, rest = pools.nodes, pools.edges, pools.header[ROOT], 1.0
    grown = total = total_weight(pools, root)
    edge = nodes[root]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        if is_mixture(pools, child):
            grown -= edges[edge]["weight"]
            share, n = edges[edge]["weight"] / total, min(nodes[child]["count"], LATEST)
            learned = posterior(batch, child, root, share, 0.0, shares)
            share = (share * n + learned - COST * m) / (n + m)
            edges[edge]["weight"] = max(share, LEAST_SHARE)
            rest -= edges[edge]["weight"]
            update_mixture(pools, batch, child, shares, variance_floor)
        edge = edges[edge]["next"]
    unit = (grown + m) / max(rest, LEAST_REST)
    edge = nodes[root]["first_edge"]
    while edge != NIL:
        if is_mixture(pools, edges[edge]["child"]):
            edges[edge]["weight"] *= unit
        edge = edges[edge]["next"]


@kernel
def fit_products(pools: Pools, Z: Array, mixture: int, n_steps: int, variance_floor: float) -> None:
    """Fit a mixture of products to the columns of ``Z`` (d, m), by steps of the learning below.

    What is known before a step counts as one record of each leaf.
    """
    d, m = Z.shape
    block, values = new_block(d, max(m, 2)), np.empty((len(pools.nodes), padded(max(m, 2))))
    copy_columns(Z, 0, m, block)
    batch = MiniBatch(block, values, np.empty(0, np.int64), m, is_complete(block, m))
    shares = np.zeros((2, padded(max(m, 2))))
    for _ in range(n_steps):
        count_as_one(pools, mixture, variance_floor)
        evaluate(pools, block, max(m, 2), values, np.arange(len(values)), NIL)
        update_mixture(pools, batch, mixture, shares, variance_floor)


@kernel
def count_as_one(pools: Pools, mixture: int, variance_floor: float) -> None:
    """Let what the leaves of a mixture of products know count as one record of each."""
    nodes, edges = pools.nodes, pools.edges
    way = nodes[mixture]["first_edge"]
    while way != NIL:
        product, edges[way]["weight"] = edges[way]["child"], 1.0
        place, nodes[product]["count"] = nodes[product]["first_edge"], 0.0
        while place != NIL:
            factor = edges[place]["child"]
            unit = WEIGHT_PRIOR / total_weight(pools, factor)
            edge = nodes[factor]["first_edge"]
            while edge != NIL:
                edges[edge]["weight"] *= unit
                nodes[edges[edge]["child"]]["observed"] = 1.0
                refresh_leaf(edges[edge]["child"], nodes, variance_floor)
                edge = edges[edge]["next"]
            place = edges[place]["next"]
        way = edges[way]["next"]


@kernel
def posterior(
    batch: MiniBatch, child: int, parent: int, weight: float, least: float, shares: Array
) -> float:
    """Fill ``shares[0]`` with the shares of a child in its parent's density; return their sum.

    Those below ``least`` count as 0, as do columns past the mini-batch.
    """
    values, m = batch.values, batch.m
    for r in range(0, m, WIDTH):
        ahead = load(values, child, r) - load(values, parent, r)
        share = exp_bounded(ahead) * weight
        store(shares, 0, r, choose(share > least, share, 0.0))
    shares[0, m:] = 0.0
    return float(shares[0, :m].sum())


@kernel
def update_mixture(
    pools: Pools, batch: MiniBatch, mixture: int, shares: Array, variance_floor: float
) -> None:
    """Let the components of a mixture learn the records by their shares."""
    nodes, edges = pools.nodes, pools.edges
    d, total = batch.Z.shape[0], total_weight(pools, mixture)
    scratch = np.empty((batch.m + d + 1, padded(max(d, 2))))
    edge = nodes[mixture]["first_edge"]
    while edge != NIL:
        child, weight = edges[edge]["child"], edges[edge]["weight"]
        learned = posterior(batch, child, mixture, weight / total, LEAST_SHARE, shares)
        if learned > 0.0:
            if nodes[child]["kind"] == MULTIVARIATE_LEAF:
                update_shared_moments(pools, batch, child, shares, scratch)
                refresh_multivariate(child, nodes, pools.stats, variance_floor)
            elif nodes[child]["kind"] == PRODUCT:
                update_factors(pools, batch, child, shares, variance_floor)
            nodes[child]["count"] += learned
            edges[edge]["weight"] = weight + learned
        edge = edges[edge]["next"]
    nodes[mixture]["count"] += batch.m


@kernel
def update_factors(
    pools: Pools, batch: MiniBatch, product: int, shares: Array, variance_floor: float
) -> None:
    """Let the mixtures of single variables below a product learn records by shares of these."""
    nodes, edges = pools.nodes, pools.edges
    seen, sums = np.zeros((3, shares.shape[1])), np.empty((3, WIDTH))
    place = nodes[product]["first_edge"]
    while place != NIL:
        factor = edges[place]["child"]
        n = list_values(batch, nodes[factor]["scope"], factor, shares, seen)
        total = total_weight(pools, factor)
        edge = nodes[factor]["first_edge"]
        while edge != NIL:
            leaf, weight = edges[edge]["child"], edges[edge]["weight"] / total
            edges[edge]["weight"] += update_shared_leaf(nodes, leaf, weight, seen, n, sums)
            refresh_leaf(leaf, nodes, variance_floor)
            edge = edges[edge]["next"]
        place = edges[place]["next"]


@kernel
def list_values(batch: MiniBatch, variable: int, parent: int, shares: Array, seen: Array) -> int:
    """List the values of a variable, a parent's log-densities of them, and shares; return how many.

    They are those of records that have the variable and a share. ``seen`` (3, .) is filled with
    shares of 0 up to whole lanes.
    """
    n = 0
    for r in range(batch.m):
        x = batch.Z[variable, r]
        if x == x and shares[0, r] > 0.0:
            seen[0, n], seen[1, n], seen[2, n] = x, batch.values[parent, r], shares[0, r]
            n += 1
    seen[:, n : padded(max(n, 2))] = 0.0
    return n


@kernel
def update_shared_leaf(
    nodes: Array, leaf: int, weight: float, seen: Array, n: int, sums: Array
) -> float:
    """Equations 3 and 4 for a leaf of one variable; return the number of records it learned.

    Its share of a record is its share in the parent's density, of the share in ``seen``. ``sums``
    (3, WIDTH) is scratch.
    """
    aligned_stack()
    at, records = nodes[leaf]["mean"], nodes[leaf]["observed"]
    precision, log_norm = nodes[leaf]["precision"], nodes[leaf]["log_norm"]
    count, first, second = spread(0.0), spread(0.0), spread(0.0)
    for r in range(0, n, WIDTH):
        x = load(seen, 0, r)
        ahead = gaussian(x, at, precision, log_norm) - load(seen, 1, r)
        share, dx = exp_bounded(ahead) * load(seen, 2, r) * weight, x - at
        count, first = count + share, fma(share, dx, first)
        second = fma(share * dx, dx, second)
    for which, lanes in enumerate((count, first, second)):
        store(sums, which, 0, lanes)
    learned: float = sums[0].sum()
    total, squares = sums[1].sum(), sums[2].sum()
    shift = total / (records + learned)
    about = squares + shift * (shift * learned - 2.0 * total)  # the new mean
    before = records * (nodes[leaf]["variance"] + shift * shift)
    nodes[leaf]["mean"] = at + shift
    nodes[leaf]["variance"] = (before + max(about, 0.0)) / (records + learned)
    nodes[leaf]["observed"] = records + learned
    return learned


@kernel
def update_shared_moments(
    pools: Pools, batch: MiniBatch, i: int, shares: Array, scratch: Array
) -> None:
    """Equations 3 and 4 for a multivariate leaf and records that count by ``shares[0]``."""
    nodes, scopes, stats, Z = pools.nodes, pools.scopes, pools.stats, batch.Z
    k, scope, offset = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    rows = np.flatnonzero(shares[0, : batch.m])
    m, matrix, everyone = len(rows), offset + 2 * k, shares[0, : batch.m].sum()
    for a in range(k):
        seen, total, before = 0.0, 0.0, stats[offset + a]
        for t in range(m):
            x, share = Z[scopes[scope + a], rows[t]], shares[0, rows[t]]
            if x == x:
                seen += share
                total += share * (x - before)
        shift = total / (stats[offset + k + a] + seen) if seen > 0.0 else 0.0
        stats[offset + a] = before + shift
        for t in range(m):
            dx = Z[scopes[scope + a], rows[t]] - (before + shift)
            scratch[t, a] = math.sqrt(shares[0, rows[t]]) * dx if dx == dx else 0.0
        scratch[m + k, a] = shift
    multiply_pairs(scratch, m, k)
    for a in range(k):
        for b in range(a, k):
            both = everyone
            if not batch.complete:
                both = 0.0
                for t in range(m):
                    x, y = Z[scopes[scope + a], rows[t]], Z[scopes[scope + b], rows[t]]
                    both += shares[0, rows[t]] if x == x and y == y else 0.0
            at = offset + k + a if a == b else matrix + b * k + a  # where pairs are counted
            n = stats[at]
            old = n * (stats[matrix + a * k + b] + scratch[m + k, a] * scratch[m + k, b])
            if n + both > 0.0:
                stats[matrix + a * k + b] = (old + scratch[m + a, b]) / (n + both)
            stats[at] = n + both
