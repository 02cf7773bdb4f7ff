"""Kernels of products over shared univariate leaves.

Product k is the product over the variables v of sum_j W[j, k] N(z_v; mean_j, variance_j), where j
runs over the leaves of v, ``first[v]`` to ``first[v + 1]``. Column 0 of W holds the marginal
weights: it is the product in which all variables are independent. Each row is computed alone;
what the compiler makes parallel are the products, so that a row's bits do not depend on others.
"""

from __future__ import annotations

import numpy as np

from ..vector.compiler import Array, kernel
from ..vector.math import exp_bounded, log_positive

CUT = 32.0
"""Nats below the most likely leaf of a variable from which on a leaf does not count: together
they change a density by less than 1e-8 of it."""

FACTORS = 8
"""Factors that are multiplied before their logarithm is taken. A factor is at least the weight of
the most likely leaf, which is far above 1e-38."""

SMALLEST = 1e-300
"""In place of products that are smaller: the logarithm needs normal numbers."""

LEAST_SHARE = 1e-3
"""Shares of a record below this are not learned."""


@kernel
def likely_leaves(
    z: float,
    leaves: Array,
    start: int,
    stop: int,
    chosen: Array,
    density: Array,
) -> tuple[int, float]:
    """List the leaves from ``start`` to ``stop`` that count at ``z``.

    ``leaves`` (3, n) holds means, precisions and log-densities at the mean. ``chosen`` takes the
    leaves and ``density`` their densities, as multiples of the largest. Returns their number and
    the logarithm of the largest.
    """
    largest = -np.inf
    for j in range(start, stop):
        dx = z - leaves[0, j]
        density[j - start] = leaves[2, j] - 0.5 * leaves[1, j] * dx * dx
    for j in range(stop - start):
        largest = max(largest, density[j])
    n = 0
    for j in range(stop - start):
        if density[j] > largest - CUT:
            chosen[n] = start + j
            density[n] = exp_bounded(density[j] - largest)
            n += 1
    return n, largest


@kernel
def weigh_leaves(n: int, chosen: Array, density: Array, W: Array, factor: Array) -> None:
    """Fill ``factor`` (K + 1,) with the sum of the chosen leaves in each product."""
    factor[:] = 0.0
    for a in range(n):
        f, row = density[a], W[chosen[a]]
        for k in range(len(factor)):
            factor[k] += f * row[k]


@kernel
def log_sum(logs: Array) -> float:
    """Return the logarithm of the sum of exponentials, and make ``logs`` shares of the sum."""
    largest = logs[0]
    for k in range(1, len(logs)):
        largest = max(largest, logs[k])
    total = 0.0
    for k in range(len(logs)):
        logs[k] = exp_bounded(logs[k] - largest)
        total += logs[k]
    for k in range(len(logs)):
        logs[k] /= total
    return largest + log_positive(total)


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
    d, m = Z.shape
    factor, product, total = np.empty((3, W.shape[1]))
    chosen, density = np.empty(len(W), np.int64), np.empty(len(W))
    for r in range(m):
        offset = 0.0
        product[:] = 1.0
        total[:] = 0.0
        for v in range(d):
            z = Z[v, r]
            if z == z:
                n, top = likely_leaves(z, leaves, first[v], first[v + 1], chosen, density)
                weigh_leaves(n, chosen, density, W, factor)
                offset += top
                for k in range(len(factor)):
                    product[k] *= factor[k]
            if v % FACTORS == FACTORS - 1 or v == d - 1:
                for k in range(len(factor)):
                    total[k] += log_positive(max(product[k], SMALLEST))
                    product[k] = 1.0
        result[0, r] = offset + total[0]
        for k in range(len(log_weight)):
            shares[r, k] = log_weight[k] + total[k + 1]
        result[1, r] = offset + log_sum(shares[r])


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
    d, m = Z.shape
    chosen, density = np.empty(len(W), np.int64), np.empty(len(W))
    active = np.empty(shares.shape[1], np.int64)
    for r in range(m):
        n_active = 0
        for k in range(shares.shape[1]):
            if shares[r, k] >= LEAST_SHARE:
                active[n_active] = k
                n_active += 1
        for v in range(d):
            z = Z[v, r]
            if z != z:
                continue
            n, _ = likely_leaves(z, leaves, first[v], first[v + 1], chosen, density)
            for a in range(n_active):
                k = active[a]
                total = 0.0
                for j in range(n):
                    total += density[j] * W[chosen[j], k + 1]
                scale = shares[r, k] / total
                for j in range(n):
                    count[chosen[j], k] += density[j] * W[chosen[j], k + 1] * scale
            total = 0.0
            for j in range(n):
                total += density[j] * W[chosen[j], 0]
            for j in range(n):
                share = density[j] * W[chosen[j], 0] / total
                moments[0, chosen[j]] += share
                moments[1, chosen[j]] += share * z
                moments[2, chosen[j]] += share * z * z


@kernel
def log_marginals(Z: Array, first: Array, leaves: Array, W: Array, result: Array) -> None:
    """Fill ``result`` (d, m) with the marginal log-density of each value, 0 where missing."""
    chosen, density = np.empty(len(W), np.int64), np.empty(len(W))
    for v in range(Z.shape[0]):
        for r in range(Z.shape[1]):
            result[v, r] = 0.0
            if Z[v, r] == Z[v, r]:
                n, top = likely_leaves(Z[v, r], leaves, first[v], first[v + 1], chosen, density)
                total = 0.0
                for j in range(n):
                    total += density[j] * W[chosen[j], 0]
                result[v, r] = top + log_positive(total)


@kernel
def marginal_shares(Z: Array, first: Array, leaves: Array, W: Array, result: Array) -> None:
    """Fill ``result`` (m, n) with the leaves' shares of each value where all are independent."""
    chosen, density = np.empty(len(W), np.int64), np.empty(len(W))
    result[:] = 0.0
    for v in range(Z.shape[0]):
        for r in range(Z.shape[1]):
            if Z[v, r] == Z[v, r]:
                n, _ = likely_leaves(Z[v, r], leaves, first[v], first[v + 1], chosen, density)
                total = 0.0
                for j in range(n):
                    total += density[j] * W[chosen[j], 0]
                for j in range(n):
                    result[r, chosen[j]] = density[j] * W[chosen[j], 0] / total
