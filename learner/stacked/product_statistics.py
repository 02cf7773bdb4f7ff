"""Kernels that learn products over shared leaves: what records say of leaves and weights."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, fma, load, spread, store
from faust_oslrau.learner.vector.math import exp_bounded, larger, log_positive

from .product_kernels import new_scratch

LEAST_SHARE = 0.01
"""Shares of a record below this are not learned: most products have one, and most of the time
would go into them."""

LEAST_LEAF = 3e-4
"""Nor are leaves whose density times weight is less than this share of a variable's, where all
variables are independent."""

FEW_LEAVES = 16
"""Leaves of a variable, so few that all of them are looked at for each value."""

BINS = 256
"""Bins by which rows are sorted."""

FARTHEST = 8.2
"""Nats below the likeliest leaf from which on no leaf has that share."""


@kernel
def observed_rows(z: Array, few: bool) -> Array:
    """List the columns of observed values, roughly ascending unless there are ``few`` leaves.

    Neighbours have few leaves that matter, which makes up for the time to sort many leaves' rows.
    """
    observed, n = np.empty(len(z), np.int64), 0
    if few:
        for r in range(len(z)):
            if z[r] == z[r]:
                observed[n] = r
                n += 1
        return observed[:n]
    ends = np.zeros(BINS + 1, np.int64)
    for r in range(len(z)):
        if z[r] == z[r]:
            ends[bin_of(z[r]) + 1] += 1
    for b in range(BINS):
        ends[b + 1] += ends[b]
    for r in range(len(z)):
        if z[r] == z[r]:
            b = bin_of(z[r])
            observed[ends[b]] = r
            ends[b] += 1
            n += 1
    return observed[:n]


@kernel
def bin_of(z: float) -> int:
    """Place a standardised value in one of the bins, which are narrow around the mean."""
    return max(0, min(int(0.5 * BINS * (1.0 + z / (1.0 + abs(z)))), BINS - 1))


@kernel
def list_near(
    least: float, most: float, log_weight: Array, lo: int, hi: int, leaves: Array, near: Array
) -> int:
    """List the leaves from ``lo`` to ``hi`` that matter to values from ``least`` to ``most``.

    No other leaf has a share of `LEAST_LEAF` of any of the values. ``log_weight`` (n,) holds
    logarithms of densities at the mean times marginal weights. Returns their number.
    """
    best, n = -np.inf, 0
    for j in range(lo, hi):
        far = max(most - leaves[0, j], leaves[0, j] - least)
        best = max(best, log_weight[j] - 0.5 * leaves[1, j] * far * far)
    for j in range(lo, hi):
        gap = max(least - leaves[0, j], leaves[0, j] - most, 0.0)
        if log_weight[j] - 0.5 * leaves[1, j] * gap * gap >= best - FARTHEST:
            near[n] = j
            n += 1
    return n


@kernel
def near_shares(
    block: Array, near: Array, n: int, leaves: Array, W: Array, densities: Array, shares: Array
) -> None:
    """Fill the first ``n`` rows of ``densities`` with those of some leaves, over the largest.

    ``shares`` takes the leaves' shares of the values where all variables are independent. The
    values are the first row of ``block`` (2, WIDTH), and their weights the second.
    """
    aligned_stack()
    z, largest, total = load(block, 0, 0), spread(-np.inf), spread(0.0)
    for a in range(n):
        j = near[a]
        dx = z - leaves[0, j]
        log_density = fma(-0.5 * leaves[1, j] * dx, dx, leaves[2, j])
        largest = larger(log_density, largest)
        store(densities, a, 0, log_density)
    for a in range(n):
        density = exp_bounded(load(densities, a, 0) - largest)
        store(densities, a, 0, density)
        share = W[near[a], 0] * density
        store(shares, a, 0, share)
        total = total + share
    scale = load(block, 1, 0) / total
    for a in range(n):
        store(shares, a, 0, load(shares, a, 0) * scale)


@kernel
def add_powers(block: Array, near: Array, n: int, lo: int, shares: Array, powers: Array) -> None:
    """Add shares times 1, z and z squared to ``powers`` (3 leaves, WIDTH), lane by lane."""
    z = load(block, 0, 0)
    for a in range(n):
        at, share = 3 * (near[a] - lo), load(shares, a, 0)
        first = share * z
        store(powers, at, 0, load(powers, at, 0) + share)
        store(powers, at + 1, 0, load(powers, at + 1, 0) + first)
        store(powers, at + 2, 0, fma(first, z, load(powers, at + 2, 0)))


@kernel
def list_likely(
    shares: Array, densities: Array, i: int, near: Array, n: int, chosen: Array, density: Array
) -> int:
    """List which of ``n`` leaves learn row ``i`` of a block, with densities; return how many."""
    found = 0
    for a in range(n):  # no branch: processors guess it wrong for every third leaf
        chosen[found], density[found] = near[a], densities[a, i]
        found += shares[a, i] >= LEAST_LEAF
    return found


@kernel
def add_statistics(
    Z: Array, shares: Array, first: Array, leaves: Array, W: Array, count: Array, moments: Array
) -> None:
    """Add what the columns of ``Z`` (d, m) say of the leaves.

    ``count`` (n, K) takes the expected records of each product by leaf, ``moments`` (3, n) the
    sums of 1, z and z squared by the leaves' shares where all variables are independent.
    """
    block, _, own_shares, densities = new_scratch(2, len(W), first)
    powers = np.empty((3 * len(densities), WIDTH))
    near, chosen = np.empty((2, len(densities)), np.int64)
    density, log_weight = np.empty((2, len(densities))), np.empty(len(W))
    for j in range(len(W)):
        log_weight[j] = leaves[2, j] + log_positive(W[j, 0])
    active, n_active = active_products(shares)
    for v in range(len(Z)):  # outside, so that its weights and counts stay in the nearest cache
        lo, hi = first[v], first[v + 1]
        rows = observed_rows(Z[v], hi - lo <= FEW_LEAVES)
        powers[:] = 0.0
        for start in range(0, len(rows), WIDTH):
            n_rows = min(WIDTH, len(rows) - start)
            least, most = np.inf, -np.inf
            for i in range(WIDTH):
                block[0, i] = Z[v, rows[start + min(i, n_rows - 1)]]
                block[1, i] = 1.0 if i < n_rows else 0.0
                least, most = min(least, block[0, i]), max(most, block[0, i])
            n_near = list_near(least, most, log_weight, lo, hi, leaves, near)
            near_shares(block, near, n_near, leaves, W, densities, own_shares)
            add_powers(block, near, n_near, lo, own_shares, powers)
            for i in range(n_rows):
                row = rows[start + i]
                n = list_likely(own_shares, densities, i, near, n_near, chosen, density[0])
                for a in range(n_active[row]):
                    k = active[row, a]
                    scale = shares[row, k] / weigh(density, chosen, n, W, k + 1)
                    for b in range(n):
                        count[chosen[b], k] += density[1, b] * scale
        for j in range(lo, hi):
            for power in range(3):
                moments[power, j] += powers[3 * (j - lo) + power].sum()


@kernel
def active_products(shares: Array) -> tuple[Array, Array]:
    """List for each row of ``shares`` (m, K) the products that learn it, and count them."""
    active, n_active = np.empty(shares.shape, np.int64), np.zeros(len(shares), np.int64)
    for r in range(len(shares)):
        for k in range(shares.shape[1]):
            if shares[r, k] >= LEAST_SHARE:
                active[r, n_active[r]] = k
                n_active[r] += 1
    return active, n_active


@kernel
def weigh(density: Array, chosen: Array, n: int, W: Array, k: int) -> float:
    """Fill the second row of ``density`` with the first times the weights; return the sum."""
    total = 0.0
    for b in range(n):
        density[1, b] = density[0, b] * W[chosen[b], k]
        total += density[1, b]
    return total


@kernel
def set_weights(
    count: Array, by_leaf: Array, first: Array, prior: Array, shrinkage: float, W: Array
) -> None:
    """Fill ``W`` (n, K + 1) by counts (n, K): marginal weights, then each product's.

    ``by_leaf`` (n,) are the sums of the counts over the products. The marginal weights have one
    record's worth of ``prior`` (n,), each product's ``shrinkage`` records' worth of the marginal
    ones.
    """
    K = count.shape[1]
    scale = np.empty(K)
    for v in range(len(first) - 1):
        everything = 1.0
        scale[:] = shrinkage
        for j in range(first[v], first[v + 1]):
            everything += by_leaf[j]
            for k in range(K):
                scale[k] += count[j, k]
        for k in range(K):
            scale[k] = 1.0 / scale[k]
        for j in range(first[v], first[v + 1]):
            marginal = (by_leaf[j] + prior[j]) / everything
            W[j, 0] = marginal
            for k in range(K):
                W[j, k + 1] = (count[j, k] + shrinkage * marginal) * scale[k]
