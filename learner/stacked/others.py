"""Kernels that tell what the other variables of a row say of each one.

Every product and Gaussian of the network gives each variable a Gaussian with a weight: its density
of the other variables. ``mixtures`` (4 d, WIDTH), the layout of the mixtures of the network of
trees, gathers them for each variable and each row of a block.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.queries.mixtures import MEAN, TOTAL, VARIANCE, add_component, add_gaussian
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, load, spread, store
from faust_oslrau.learner.vector.math import larger, log_positive

from .gaussian_kernels import (
    FAR,
    LOG_2PI,
    add_direction,
    remove_direction,
    remove_directions,
    whiten_observed,
)
from .product_kernels import SMALLEST, leaf_densities, multiply_factors, new_scratch


@kernel
def add_products(
    block: Array,
    first: Array,
    leaves: Array,
    W: Array,
    log_weight: Array,
    moments: Array,
    mixtures: Array,
) -> None:
    """Merge products into the mixtures of a block (d, WIDTH).

    ``log_weight`` (K + 1,) is that of each product in the whole network, ``moments`` (2, d, K + 1)
    means and variances of the products' variables.
    """
    d, K = len(block), W.shape[1]
    _, products, _, densities = new_scratch(d, K, first)
    factors, before = np.empty((d * K, WIDTH)), np.empty((d, WIDTH))
    for v in range(d):
        leaf_densities(block, v, first, leaves, densities)
        products[:] = 1.0
        multiply_factors(block, v, first, densities, W, products)
        for k in range(K):
            log_factor = log_positive(larger(load(products, k, 0), SMALLEST))
            store(factors, v * K + k, 0, log_factor + load(densities, len(densities) - 1, 0))
    for k in range(K):
        total = spread(log_weight[k])
        for v in range(d):
            store(before, v, 0, total)
            total = total + load(factors, v * K + k, 0)
        after = spread(0.0)
        for v in range(d - 1, -1, -1):
            down = load(before, v, 0) + after
            add_component(v, 0, down, moments[0, v, k], moments[1, v, k], d, mixtures)
            after = after + load(factors, v * K + k, 0)


@kernel
def gaussian_given_others(
    z: Array, v: int, mean: Array, whitening: Array, scratch: Array
) -> tuple[float, float, float, float]:
    """Tell what one Gaussian says of variable ``v`` given the other observed ones of ``z`` (d,).

    Their squared distance, what to add to the log norm, and mean and variance of the variable.
    """
    d = len(z)
    n, log_norm = 0, 0.0
    for u in range(d):
        if z[u] != z[u] and u != v:
            log_norm += 0.5 * LOG_2PI - log_positive(add_direction(whitening, u, n, scratch))
            n += 1
    length = add_direction(whitening, v, n, scratch)
    log_norm += 0.5 * LOG_2PI - log_positive(length)
    y, centre = scratch[2 * d], z[v] - mean[v]
    whiten_observed(z, mean, whitening, -1, y)
    remove_directions(y, n, scratch)
    along = remove_direction(y, scratch[n])
    if centre != centre:
        centre = 0.0
    elif abs(along) > FAR:
        whiten_observed(z, mean, whitening, v, y)
        remove_directions(y, n, scratch)
        along, centre = remove_direction(y, scratch[n]), 0.0
    total = 0.0
    for c in range(d):
        total += y[c] * y[c]
    if n == d - 1:
        total = 0.0  # there are no others
    return total, log_norm, mean[v] + centre - along / length, 1.0 / (length * length)


@kernel
def add_gaussians(
    block: Array,
    n: int,
    mean: Array,
    whitening: Array,
    log_norm: Array,
    widths: Array,
    log_weight: Array,
    mixtures: Array,
) -> None:
    """Merge Gaussians, each at several widths, into the mixtures of ``n`` columns of a block.

    ``log_weight`` (K, S) is that of each Gaussian at each width in the whole network. Moments are
    those of the Gaussian at its own width.
    """
    d = len(block)
    scratch = np.zeros((2 * d + 4, d))
    z = np.empty(d)
    for i in range(n):
        for v in range(d):
            z[v] = block[v, i]
        for v in range(d):
            others = 0
            for u in range(d):
                others += z[u] == z[u] and u != v
            for k in range(len(mean)):
                found = gaussian_given_others(z, v, mean[k], whitening[k], scratch)
                for s in range(len(widths)):
                    square = widths[s] * widths[s]
                    log_density = log_norm[k] + found[1] - others * log_positive(widths[s])
                    log_density += log_weight[k, s] - 0.5 * found[0] / square
                    merge(v, i, log_density, found[2], found[3], d, mixtures)


@kernel
def add_tree(log_weight: Array, mean: Array, variance: Array, d: int, mixtures: Array) -> None:
    """Merge what the tree says of each variable (d, n) into the mixtures of ``n`` columns."""
    for v in range(d):
        for i in range(log_weight.shape[1]):
            merge(v, i, log_weight[v, i], mean[v, i], variance[v, i], d, mixtures)


@kernel
def merge(
    v: int, i: int, log_weight: float, mean: float, variance: float, d: int, mixtures: Array
) -> None:
    """Merge one Gaussian into the mixture of one variable and row."""
    t, m, s = TOTAL * d + v, MEAN * d + v, VARIANCE * d + v
    mixtures[v, i], mixtures[t, i], mixtures[m, i], mixtures[s, i] = add_gaussian(
        log_weight, mean, variance, mixtures[v, i], mixtures[t, i], mixtures[m, i], mixtures[s, i]
    )


@kernel
def finish(mixtures: Array, d: int, n: int, start: int, result: Array) -> None:
    """Fill ``result`` (3, d, m) from the mixtures of ``n`` columns: log-densities and moments."""
    for v in range(d):
        for i in range(n):
            result[0, v, start + i] = mixtures[v, i] + log_positive(mixtures[TOTAL * d + v, i])
            result[1, v, start + i] = mixtures[MEAN * d + v, i]
            result[2, v, start + i] = mixtures[VARIANCE * d + v, i]
