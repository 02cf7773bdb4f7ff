"""Kernels that tell what the other variables of a row say of each one, by Gaussians over all.

Each gives each variable a Gaussian with a weight: its density of the other variables.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import log_positive

from .gaussian_kernels import LOG_2PI
from .missing_kernels import (
    FAR,
    add_direction,
    new_scratch,
    remove_direction,
    remove_directions,
    whiten_observed,
)
from .mixtures import MEAN, TOTAL, VARIANCE, add_gaussian

NONE = -1
"""In place of a variable."""


@kernel
def without_one(
    z: Array, v: int, n: int, mean: Array, whitening: Array, scratch: Array
) -> tuple[float, float, float, float]:
    """Tell what one Gaussian says of variable ``v`` given the other observed ones of ``z`` (d,).

    Their squared distance, what to add to the log norm beside the missing ones, and mean and
    variance of the variable. The first ``n`` rows of ``scratch`` are the orthogonal directions of
    the missing variables other than ``v``; row 2 d is y of ``z``, across those directions.
    """
    d = len(z)
    length = add_direction(whitening, v, n, scratch)
    y, centre = scratch[2 * d + 1], z[v] - mean[v]
    y[:] = scratch[2 * d]
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
    log_norm = 0.5 * LOG_2PI - log_positive(length)
    return total, log_norm, mean[v] + centre - along / length, 1.0 / (length * length)


@kernel
def prepare(z: Array, v: int, mean: Array, whitening: Array, scratch: Array) -> tuple[int, float]:
    """Fill ``scratch`` for `without_one` with missing variables other than ``v``, or with all.

    Returns their number, and what they add to the log norm.
    """
    d = len(z)
    n, log_norm = 0, 0.0
    for u in range(d):
        if z[u] != z[u] and u != v:
            log_norm += 0.5 * LOG_2PI - log_positive(add_direction(whitening, u, n, scratch))
            n += 1
    whiten_observed(z, mean, whitening, NONE, scratch[2 * d])
    remove_directions(scratch[2 * d], n, scratch)
    return n, log_norm


@kernel
def add_gaussians(
    block: Array,
    first: int,
    mean: Array,
    whitening: Array,
    log_norm: Array,
    widths: Array,
    log_weight: Array,
    rest: Array,
    mixtures: Array,
) -> None:
    """Merge Gaussians, each at several widths, into the mixtures of the first columns of a block.

    They are Gaussians of the variables from ``first`` on, which do not depend on the others;
    ``rest`` (3, n) has the squared distances of these, log-densities at distance 0 and observed
    variables. ``log_weight`` (K, S) is that of each Gaussian at each width in the whole network.
    Moments are those of the Gaussian at its own width.
    """
    d = mean.shape[1]
    scratch, z = new_scratch(d), np.empty(d)
    for i in range(rest.shape[1]):
        observed = rest[2, i]
        for v in range(d):
            z[v] = block[first + v, i]
            observed += z[v] == z[v]
        for k in range(len(mean)):
            n_missing, missing_norm = prepare(z, NONE, mean[k], whitening[k], scratch)
            for v in range(d):
                known, count, norm = z[v] == z[v], n_missing, missing_norm
                if not known:
                    count, norm = prepare(z, v, mean[k], whitening[k], scratch)
                found = without_one(z, v, count, mean[k], whitening[k], scratch)
                if not known:
                    prepare(z, NONE, mean[k], whitening[k], scratch)
                norm += log_norm[k] + found[1] + rest[1, i]
                for s in range(len(widths)):
                    log_density = norm - (observed - known) * log_positive(widths[s])
                    distance = found[0] + rest[0, i]
                    log_density += log_weight[k, s] - 0.5 * distance / (widths[s] * widths[s])
                    merge(first + v, i, log_density, found[2], found[3], len(block), mixtures)


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
