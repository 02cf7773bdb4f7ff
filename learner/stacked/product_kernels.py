"""Kernels of products over shared univariate leaves.

Product k is the product over the variables v of sum_j W[j, k] N(z_v; mean_j, variance_j), where j
runs over the leaves of v, ``first[v]`` to ``first[v + 1]``. Column 0 of W holds the marginal
weights: it is the product in which all variables are independent.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.density.mixtures import share_out
from faust_oslrau.learner.vector.blocks import copy_columns
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    SUMS,
    WIDTH,
    Value,
    aligned_stack,
    choose,
    fma,
    load,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import exp_bounded, larger, log_positive

FACTORS = 8
"""Factors that are multiplied before their logarithm is taken. A factor is at least the weight of
the most likely leaf, which is far above 1e-38."""

SMALLEST = 1e-300
"""In place of products that are smaller: the logarithm needs normal numbers."""


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
    for k in range(0, last + 1, SUMS):  # each sum waits for its last term, so some at a time
        b, c, e = min(k + 1, last), min(k + 2, last), min(k + 3, last)
        one, two, three, four = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for j in range(n):
            density = load(densities, j, 0)
            one = fma(W[start + j, k], density, one)
            two = fma(W[start + j, b], density, two)
            if SUMS == 4:
                three = fma(W[start + j, c], density, three)
                four = fma(W[start + j, e], density, four)
        multiply(products, k, choose(z == z, one, 1.0))
        if k < b:
            multiply(products, b, choose(z == z, two, 1.0))
        if SUMS == 4 and b < c:
            multiply(products, c, choose(z == z, three, 1.0))
        if SUMS == 4 and c < e:
            multiply(products, e, choose(z == z, four, 1.0))


@kernel
def multiply(products: Array, k: int, factor: Value) -> None:
    """Multiply lanes of row ``k``."""
    store(products, k, 0, load(products, k, 0) * factor)


@kernel
def take_logarithms(products: Array, totals: Array) -> None:
    """Add the logarithms of ``products`` to ``totals``, and make the products 1."""
    for k in range(len(products)):
        log = log_positive(larger(load(products, k, 0), SMALLEST))
        store(totals, k, 0, load(totals, k, 0) + log)
        store(products, k, 0, spread(1.0))


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
    logs = np.zeros((len(log_weight) + 1, WIDTH))
    for start in range(0, m, WIDTH):
        n = min(WIDTH, m - start)
        copy_columns(Z, start, n, block)
        offset = spread(0.0)
        products[:], totals[:] = 1.0, 0.0
        for v in range(d):
            if is_observed(block, v, n):
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
                logs[k, i] = log_weight[k] + totals[k + 1, i]
        share_out(logs, n, start, result[1], shares)


@kernel
def is_observed(block: Array, v: int, n: int) -> bool:
    """Whether one of the first ``n`` rows has a value of the variable."""
    found = False
    for i in range(n):
        found |= block[v, i] == block[v, i]
    return found


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
def marginals(
    Z: Array, first: Array, leaves: Array, W: Array, log_density: Array, shares: Array
) -> None:
    """Fill ``log_density`` (d, m) with those of single values, ``shares`` (m, n) with the leaves'.

    Where all variables are independent; 0 where a value is missing.
    """
    aligned_stack()
    d, m = Z.shape
    block, _, _, densities = new_scratch(d, 1, first)
    result = np.empty((1, WIDTH))
    for start in range(0, m, WIDTH):
        n_rows = min(WIDTH, m - start)
        copy_columns(Z, start, n_rows, block)
        for v in range(d):
            leaf_densities(block, v, first, leaves, densities)
            z, total, lo = load(block, v, 0), spread(0.0), first[v]
            for j in range(first[v + 1] - lo):
                share = load(densities, j, 0) * W[lo + j, 0]
                total = total + share
                store(densities, j, 0, share)
            log = load(densities, len(densities) - 1, 0) + log_positive(total)
            store(result, 0, 0, choose(z == z, log, 0.0))
            for j in range(first[v + 1] - lo):
                store(densities, j, 0, choose(z == z, load(densities, j, 0) / total, 0.0))
            for i in range(n_rows):
                log_density[v, start + i] = result[0, i]
                for j in range(first[v + 1] - lo):
                    shares[start + i, lo + j] = densities[j, i]


@kernel
def given_others(Z: Array, first: Array, leaves: Array, W: Array, result: Array) -> None:
    """Fill ``result`` (K + 1, d, m) with log-densities of the others of each variable.

    By each product, for the columns of ``Z`` (d, m).
    """
    (d, m), K = Z.shape, W.shape[1]
    block, products, _, densities = new_scratch(d, K, first)
    factors, before = np.empty((d * K, WIDTH)), np.empty((d, WIDTH))
    for start in range(0, m, WIDTH):
        n = min(WIDTH, m - start)
        copy_columns(Z, start, n, block)
        for v in range(d):
            leaf_densities(block, v, first, leaves, densities)
            products[:] = 1.0
            multiply_factors(block, v, first, densities, W, products)
            for k in range(K):
                log_factor = log_positive(larger(load(products, k, 0), SMALLEST))
                store(factors, v * K + k, 0, log_factor + load(densities, len(densities) - 1, 0))
        for k in range(K):
            total, after = spread(0.0), spread(0.0)
            for v in range(d):
                store(before, v, 0, total)
                total = total + load(factors, v * K + k, 0)
            for v in range(d - 1, -1, -1):
                store(before, v, 0, load(before, v, 0) + after)
                after = after + load(factors, v * K + k, 0)
                for i in range(n):
                    result[k, v, start + i] = before[v, i]
