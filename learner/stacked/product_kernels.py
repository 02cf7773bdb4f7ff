"""Kernels of products over shared univariate leaves.

Product k is the product over the variables v of sum_j W[j, k] N(z_v; mean_j, variance_j), where j
runs over the leaves of v, ``first[v]`` to ``first[v + 1]``. Column 0 of W holds the marginal
weights: it is the product in which all variables are independent.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, choose, fma, load, spread, store
from faust_oslrau.learner.vector.math import exp_bounded, larger, log_positive

FACTORS = 8
"""Factors that are multiplied before their logarithm is taken. A factor is at least the weight of
the most likely leaf, which is far above 1e-38."""

SMALLEST = 1e-300
"""In place of products that are smaller: the logarithm needs normal numbers."""

LEAST_SHARE = 0.01
"""Shares of a record below this are not learned: most products have one, and most of the time
would go into them."""

LEAST_LEAF = 1e-5
"""Nor are leaves whose density times weight is less than this share of a variable's, where all
variables are independent."""

FEW_LEAVES = 16
"""Leaves of a variable, so few that all of them are looked at for each value."""

BINS = 256
"""Bins by which rows are sorted."""

FARTHEST = 12.0
"""Nats below the likeliest leaf from which on no leaf has that share."""


@kernel
def copy_rows(Z: Array, start: int, n: int, block: Array) -> None:
    """Fill the first columns of ``block`` (d, WIDTH) with ``n`` columns of ``Z``."""
    for v in range(len(Z)):
        for i in range(n):
            block[v, i] = Z[v, start + i]


@kernel
def leaf_densities(block: Array, v: int, first: Array, leaves: Array, densities: Array) -> None:
    """Fill the first rows of ``densities`` with those of a variable's leaves, rows side by side.

    They are multiples of the largest, whose logarithm goes to the last row. ``leaves`` (3, n)
    holds means, precisions and log-densities at the mean.
    """
    z, start, n = load(block, v, 0), first[v], first[v + 1] - first[v]
    largest = spread(-np.inf)
    for j in range(n):
        dx = z - leaves[0, start + j]
        log_density = fma(-0.5 * leaves[1, start + j] * dx, dx, leaves[2, start + j])
        largest = larger(log_density, largest)
        store(densities, j, 0, log_density)
    for j in range(n):
        store(densities, j, 0, exp_bounded(load(densities, j, 0) - largest))
    store(densities, len(densities) - 1, 0, choose(z == z, largest, 0.0))


@kernel
def multiply_factors(
    block: Array, v: int, first: Array, densities: Array, W: Array, products: Array
) -> None:
    """Multiply each row of ``products`` (K + 1, WIDTH) by its sum over the variable's leaves."""
    aligned_stack()
    z, start, n = load(block, v, 0), first[v], first[v + 1] - first[v]
    last = W.shape[1] - 1
    for k in range(0, last + 1, 2):
        other = min(k + 1, last)  # two sums at a time take each density from memory once
        one, two = spread(0.0), spread(0.0)
        for j in range(n):
            density = load(densities, j, 0)
            one = fma(W[start + j, k], density, one)
            two = fma(W[start + j, other], density, two)
        store(products, k, 0, load(products, k, 0) * choose(z == z, one, 1.0))
        if other > k:
            store(products, other, 0, load(products, other, 0) * choose(z == z, two, 1.0))


@kernel
def take_logarithms(products: Array, totals: Array) -> None:
    """Add the logarithms of ``products`` to ``totals``, and make the products 1."""
    for k in range(len(products)):
        log = log_positive(larger(load(products, k, 0), SMALLEST))
        store(totals, k, 0, load(totals, k, 0) + log)
        store(products, k, 0, spread(1.0))


@kernel
def log_sum(logs: Array) -> float:
    """Return the logarithm of the sum of exponentials, and make ``logs`` shares of the sum."""
    largest: float = logs[0]
    for k in range(1, len(logs)):
        largest = max(largest, logs[k])
    total = 0.0
    for k in range(len(logs)):
        logs[k] = exp_bounded(logs[k] - largest)
        total += logs[k]
    for k in range(len(logs)):
        logs[k] /= total
    log_total: float = log_positive(total)
    return largest + log_total


@kernel
def log_sums_of_rows(logs: Array, result: Array) -> None:
    """Do the same for each row of ``logs`` (m, K)."""
    for r in range(len(logs)):
        result[r] = log_sum(logs[r])


@kernel
def log_densities(
    Z: Array, first: Array, leaves: Array, W: Array, log_weight: Array, result: Array, shares: Array
) -> None:
    """Fill ``result`` (2, m) for the columns of ``Z`` (d, m), and ``shares`` (m, K).

    The log-density where all variables are independent, and that of the sum of the products; and
    the products' shares of the latter. NaN is marginalised.
    """
    aligned_stack()
    d, m = Z.shape
    block, products, totals, densities = new_scratch(d, W.shape[1], first)
    for start in range(0, m, WIDTH):
        n = min(WIDTH, m - start)
        copy_rows(Z, start, n, block)
        offset = spread(0.0)
        products[:], totals[:] = 1.0, 0.0
        for v in range(d):
            leaf_densities(block, v, first, leaves, densities)
            multiply_factors(block, v, first, densities, W, products)
            offset = offset + load(densities, len(densities) - 1, 0)
            if v % FACTORS == FACTORS - 1 or v == d - 1:
                take_logarithms(products, totals)
        for k in range(len(totals)):
            store(totals, k, 0, load(totals, k, 0) + offset)
        for i in range(n):
            result[0, start + i] = totals[0, i]
            for k in range(len(log_weight)):
                shares[start + i, k] = log_weight[k] + totals[k + 1, i]
            result[1, start + i] = log_sum(shares[start + i])


@kernel
def new_scratch(d: int, columns: int, first: Array) -> tuple[Array, Array, Array, Array]:
    """Room for WIDTH rows: their values, products, totals and the densities of a variable."""
    most = 0
    for v in range(len(first) - 1):
        most = max(most, first[v + 1] - first[v])
    return (
        np.zeros((d, WIDTH)),
        np.empty((columns, WIDTH)),
        np.empty((columns, WIDTH)),
        np.empty((most + 1, WIDTH)),
    )


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
    for a in range(n):
        if shares[a, i] >= LEAST_LEAF:
            chosen[found], density[found] = near[a], densities[a, i]
            found += 1
    return found


@kernel
def add_statistics(
    Z: Array,
    shares: Array,
    first: Array,
    leaves: Array,
    W: Array,
    count: Array,
    moments: Array,
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
def set_weights(count: Array, first: Array, prior: Array, shrinkage: float, W: Array) -> None:
    """Fill ``W`` (n, K + 1) by counts (n, K): marginal weights, then each product's.

    The marginal weights have one record's worth of ``prior`` (n,), each product's ``shrinkage``
    records' worth of the marginal ones.
    """
    K = count.shape[1]
    totals = np.empty(K)
    for v in range(len(first) - 1):
        everything = 1.0
        totals[:] = shrinkage
        for j in range(first[v], first[v + 1]):
            W[j, 0] = prior[j]
            for k in range(K):
                W[j, 0] += count[j, k]
                totals[k] += count[j, k]
            everything += W[j, 0] - prior[j]
        for j in range(first[v], first[v + 1]):
            W[j, 0] /= everything
            for k in range(K):
                W[j, k + 1] = (count[j, k] + shrinkage * W[j, 0]) / totals[k]


@kernel
def marginals(
    Z: Array, first: Array, leaves: Array, W: Array, log_density: Array, shares: Array
) -> None:
    """Fill ``log_density`` (d, m) with those of single values, ``shares`` (m, n) with the leaves'.

    Where all variables are independent; 0 where a value is missing.
    """
    d, m = Z.shape
    block, _, _, densities = new_scratch(d, 1, first)
    log_density[:], shares[:] = 0.0, 0.0
    for start in range(0, m, WIDTH):
        n_rows = min(WIDTH, m - start)
        copy_rows(Z, start, n_rows, block)
        for v in range(d):
            leaf_densities(block, v, first, leaves, densities)
            for i in range(n_rows):
                if block[v, i] == block[v, i]:
                    total = 0.0
                    for j in range(first[v + 1] - first[v]):
                        total += densities[j, i] * W[first[v] + j, 0]
                    top = densities[len(densities) - 1, i]
                    log_density[v, start + i] = top + log_positive(total)
                    for j in range(first[v + 1] - first[v]):
                        share = densities[j, i] * W[first[v] + j, 0] / total
                        shares[start + i, first[v] + j] = share


@kernel
def add_cross_products(A: Array, B: Array, result: Array) -> None:
    """Add A^T B to ``result`` (n, k), for ``A`` (m, n) and ``B`` (m, k).

    In this order whatever the number of processors, which a library's product need not be.
    """
    for r in range(len(A)):
        for i in range(A.shape[1]):
            for j in range(B.shape[1]):
                result[i, j] += A[r, i] * B[r, j]
