"""Kernels that compare each field of a row with the others under the mixed density of its entity.

Each part of the mixture gives the density, mean and variance of a field given the others. The
parts weigh by their weight times their density of the others.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel

from .habit_kernels import KINDS, NETWORK, OWN, Predicted, Shared
from .student import factorise, log_student, observed_first

JOINT, LOG_FIELD, MEAN, VARIANCE = range(4)
"""Of one part of the mixture: its weighted log-density in the first place of a row; then for each
field, its log-density given the others, mean and variance."""


@kernel
def log_density(
    U: Array, network: Array, shared: Shared, predicted: Predicted, result: Array
) -> None:
    """Fill ``result`` (m,) with log-densities of rows ``U`` (m, d), by those of the network."""
    found, order = new_parts(U.shape[1], shared), np.empty(U.shape[1], np.int64)
    for r in range(len(U)):
        fill_parts(U[r], r, network[r], shared, predicted, order, found)
        result[r] = log_sum(found[:, JOINT, 0])


@kernel
def given_others(
    U: Array, score: Array, network: Array, shared: Shared, predicted: Predicted, result: Array
) -> None:
    """Fill ``result`` (3, m, d): -log p(field | the others), mean and deviation given the others.

    ``score`` (m,) are the network's log-densities of rows ``U`` (m, d), ``network`` (3, m, d) what
    it says of the same.
    """
    m, d = U.shape
    found, order = new_parts(d, shared), np.empty(d, np.int64)
    logs = np.empty(len(found))
    for r in range(m):
        fill_parts(U[r], r, score[r], shared, predicted, order, found)
        for v in range(d):
            found[0, LOG_FIELD, v] = -network[0, r, v]
            found[0, MEAN, v] = network[1, r, v]
            found[0, VARIANCE, v] = network[2, r, v] * network[2, r, v]
        whole = log_sum(found[:, JOINT, 0])
        for v in range(d):
            observed = U[r, v] == U[r, v]
            for p in range(len(found)):
                logs[p] = found[p, JOINT, 0] - (found[p, LOG_FIELD, v] if observed else 0.0)
            others = log_sum(logs)
            mean, variance = 0.0, 0.0
            for p in range(len(found)):
                logs[p] = math.exp(logs[p] - others)
                mean += logs[p] * found[p, MEAN, v]
            for p in range(len(found)):
                off = found[p, MEAN, v] - mean
                variance += logs[p] * (found[p, VARIANCE, v] + off * off)
            result[0, r, v] = others - whole if observed else np.nan
            result[1, r, v], result[2, r, v] = mean, math.sqrt(variance)


@kernel
def new_parts(d: int, shared: Shared) -> Array:
    """Return room for the parts of a mixture: the network, the kinds, and the own covariance."""
    return np.empty((len(shared.weight) + 2, 4, d))


@kernel
def fill_parts(
    u: Array,
    r: int,
    network: float,
    shared: Shared,
    predicted: Predicted,
    order: Array,
    found: Array,
) -> int:
    """Fill ``found`` (parts, 4, d) for one row, and ``order`` (d,) as `observed_first` does.

    Of the network, whose log-density is given, the joint density only. Returns how many values are
    observed.
    """
    d, K = len(u), len(shared.weight)
    n = observed_first(u, order)
    factor, inverse = np.zeros((d, d + 1)), np.zeros((d, d))
    found[0, JOINT, 0] = math.log(predicted.weight[r, NETWORK]) + network
    for k in range(K):
        weight = predicted.weight[r, KINDS] * predicted.kind_weight[r, k]
        fill_part(
            weight, u, shared.mean[k], shared.covariance[k], np.inf, order, n, factor, inverse,
            found[1 + k],
        )  # fmt: skip
    fill_part(
        predicted.weight[r, OWN], u, np.zeros(d), predicted.covariance[r], predicted.freedom[r],
        order, n, factor, inverse, found[1 + K],
    )  # fmt: skip
    return n


@kernel
def fill_part(
    weight: float,
    u: Array,
    mean: Array,
    covariance: Array,
    freedom: float,
    order: Array,
    n: int,
    factor: Array,
    inverse: Array,
    part: Array,
) -> None:
    """Fill what Student's t, or with infinite freedom a Gaussian, says of each field.

    ``covariance`` (d (d + 1) / 2) are its squared scales. ``factor`` (d, d + 1) and ``inverse``
    (d, d) are room to work in.
    """
    d = len(u)
    square, log_scale = factorise(covariance, u - mean, order, n, factor)
    invert(factor, n, inverse)
    part[JOINT, 0] = math.log(weight) + log_student(square, log_scale, freedom, n)
    for a in range(d):
        v = order[a]
        if a < n:
            known = n - 1
            off, scale = off_others(factor, inverse, n, a)
            scale *= growth(freedom, max(square - off * off / scale, 0.0), known)
            log_field = log_student(off * off / scale, 0.5 * math.log(scale), freedom + known, 1)
            part[LOG_FIELD, v], part[MEAN, v] = log_field, u[v] - off
        else:
            known, scale = n, factor[a, a] * growth(freedom, square, n)
            part[MEAN, v] = mean[v] - factor[a, d]
        part[VARIANCE, v] = scale * (1.0 + 2.0 / (freedom + known - 2.0))


@kernel
def growth(freedom: float, square: float, n: int) -> float:
    """Return by what squared scales grow given ``n`` values at a squared distance."""
    return (freedom + square) / (freedom + n) if freedom < np.inf else 1.0


@kernel
def invert(factor: Array, n: int, inverse: Array) -> None:
    """Fill the first ``n`` rows and columns with the inverse of an upper triangle."""
    for i in range(n - 1, -1, -1):
        inverse[i, i] = 1.0 / factor[i, i]
        for j in range(i + 1, n):
            total = 0.0
            for c in range(i + 1, j + 1):
                total -= factor[i, c] * inverse[c, j]
            inverse[i, j] = total * inverse[i, i]


@kernel
def off_others(factor: Array, inverse: Array, n: int, a: int) -> tuple[float, float]:
    """Return how far field ``a`` is off its mean given the others, and its variance given them."""
    precision, pull = 0.0, 0.0
    for c in range(a, n):
        precision += inverse[a, c] * inverse[a, c]
        pull += inverse[a, c] * factor[c, len(factor)]
    return pull / precision, 1.0 / precision


@kernel
def log_sum(logs: Array) -> float:
    """Return the logarithm of the sum of exponentials."""
    top, total = float(logs.max()), 0.0
    for p in range(len(logs)):
        total += math.exp(logs[p] - top)
    return top + math.log(total)
