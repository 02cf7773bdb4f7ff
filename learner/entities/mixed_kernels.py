"""Kernels that compare each field of a row with the others under the mixed density of its entity.

Each part of the mixture gives the density, mean and variance of a field given the others. The
parts weigh by their weight times their density of the others.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel

from .habit_kernels import (
    KINDS,
    LOG_2PI,
    LOG_PI,
    NETWORK,
    OWN,
    WIDER,
    Predicted,
    Shared,
    factorise,
    log_student,
    observed_first,
)

JOINT, LOG_FIELD, MEAN, VARIANCE = range(4)
"""Of one part of the mixture: its weighted log-density in the first place of a row; then for each
field, its log-density given the others, mean and variance."""


@kernel
def log_density(
    U: Array, network: Array, shared: Shared, predicted: Predicted, result: Array
) -> None:
    """Fill ``result`` (m,) with log-densities of rows ``U`` (m, d), by those of the network."""
    d, most = U.shape[1], 2 * len(shared.weight) + 3 + len(shared.first_weight)
    every, factor, inverse = np.empty((most, 4, d)), np.zeros((d, d + 1)), np.zeros((d, d))
    order = np.empty(d, np.int64)
    for r in range(len(U)):
        n = observed_first(U[r], order)
        parts = fill_parts(U[r], r, order, n, shared, predicted, factor, inverse, every)
        found = every[:parts]
        found[0, JOINT, 0] = math.log(predicted.weight[r, NETWORK]) + network[r]
        result[r] = log_sum(found[:, JOINT, 0])


@kernel
def given_others(
    U: Array, score: Array, network: Array, shared: Shared, predicted: Predicted, result: Array
) -> None:
    """Fill ``result`` (3, m, d): -log p(field | the others), mean and deviation given the others.

    ``score`` (m,) are the network's log-densities of rows ``U`` (m, d), ``network`` (3, m, d) what
    it says of the same.
    """
    (m, d), most = U.shape, 2 * len(shared.weight) + 3 + len(shared.first_weight)
    every, factor, inverse = np.empty((most, 4, d)), np.zeros((d, d + 1)), np.zeros((d, d))
    order, every_log = np.empty(d, np.int64), np.empty(most)
    for r in range(m):
        n = observed_first(U[r], order)
        parts = fill_parts(U[r], r, order, n, shared, predicted, factor, inverse, every)
        found, logs = every[:parts], every_log[:parts]
        found[0, JOINT, 0] = math.log(predicted.weight[r, NETWORK]) + score[r]
        for v in range(d):
            found[0, LOG_FIELD, v] = -network[0, r, v]
            found[0, MEAN, v] = network[1, r, v]
            found[0, VARIANCE, v] = network[2, r, v] * network[2, r, v]
        whole = log_sum(found[:, JOINT, 0])
        for v in range(d):
            observed = U[r, v] == U[r, v]
            for p in range(parts):
                logs[p] = found[p, JOINT, 0] - (found[p, LOG_FIELD, v] if observed else 0.0)
            others = log_sum(logs)
            mean, variance = 0.0, 0.0
            for p in range(parts):
                logs[p] = math.exp(logs[p] - others)
                mean += logs[p] * found[p, MEAN, v]
            for p in range(parts):
                off = found[p, MEAN, v] - mean
                variance += logs[p] * (found[p, VARIANCE, v] + off * off)
            result[0, r, v] = others - whole if observed else np.nan
            result[1, r, v], result[2, r, v] = mean, math.sqrt(variance)


@kernel
def fill_parts(
    u: Array,
    r: int,
    order: Array,
    n: int,
    shared: Shared,
    predicted: Predicted,
    factor: Array,
    inverse: Array,
    found: Array,
) -> int:
    """Fill ``found`` (parts, 4, d) for one row, except for the network, the first part.

    Then come the kinds by turns with the wide ones, the own covariance and the wide one, and the
    kinds of first records if the row is one. Returns how many parts there are.
    """
    d, K = len(u), len(shared.weight)
    weight, dx = predicted.weight[r], np.empty(d)
    for k in range(K):
        mean = shared.mean[k]
        square, log_scale = factorise_around(
            shared.covariance[k], u, mean, order, n, dx, factor, inverse
        )
        for wide in range(2):
            joint = weight[KINDS + wide] * predicted.kind_weight[r, k]
            wider, part = WIDER if wide == 1 else 1.0, found[1 + 2 * k + wide]
            fill_joint(joint, square, log_scale, n, wider, part)
            fill_gaussian(dx, mean, order, n, wider, factor, inverse, part)
    square, log_scale = factorise(predicted.covariance[r], u, order, n, factor)
    invert(factor, n, inverse)
    freedom = predicted.freedom[r]
    for wide in range(2):
        wider = WIDER if wide == 1 else 1.0
        part, log_wider = found[1 + 2 * K + wide], n * math.log(wider)
        joint = log_student(square / wider**2, log_scale + log_wider, freedom, n)
        part[JOINT, 0] = math.log(weight[OWN + wide]) + joint
        fill_student(u, order, n, wider, square, freedom, factor, inverse, part)
    parts = 2 * K + 3
    if predicted.first[r] == 0.0:
        return parts
    for k in range(len(shared.first_weight)):
        mean, part = shared.first_mean[k], found[parts + k]
        square, log_scale = factorise_around(
            shared.first_covariance[k], u, mean, order, n, dx, factor, inverse
        )
        joint = predicted.first[r] * shared.first_weight[k]
        fill_joint(joint, square, log_scale, n, 1.0, part)
        fill_gaussian(dx, mean, order, n, 1.0, factor, inverse, part)
    return parts + len(shared.first_weight)


@kernel
def factorise_around(
    covariance: Array,
    u: Array,
    mean: Array,
    order: Array,
    n: int,
    dx: Array,
    factor: Array,
    inverse: Array,
) -> tuple[float, float]:
    """Fill ``dx`` (d,), ``factor`` and ``inverse`` for a Gaussian with a mean.

    Returns the squared distance of the ``n`` observed values of ``u``, and their log scale.
    """
    for v in range(len(u)):
        dx[v] = u[v] - mean[v]
    square, log_scale = factorise(covariance, dx, order, n, factor)
    invert(factor, n, inverse)
    return square, log_scale


@kernel
def fill_joint(
    weight: float, square: float, log_scale: float, n: int, wider: float, part: Array
) -> None:
    """Fill the weighted log-density of a row by a Gaussian that is so many times ``wider``."""
    part[JOINT, 0] = math.log(weight) - 0.5 * (square / wider**2 + n * LOG_2PI)
    part[JOINT, 0] -= log_scale + n * math.log(wider)


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
def fill_gaussian(
    dx: Array,
    mean: Array,
    order: Array,
    n: int,
    wider: float,
    factor: Array,
    inverse: Array,
    part: Array,
) -> None:
    """Fill what a Gaussian says of each field given the others, by distances from its mean."""
    for a in range(len(dx)):
        v = order[a]
        if a < n:
            off, variance = off_others(factor, inverse, n, a)
            variance *= wider * wider
            part[MEAN, v] = mean[v] + dx[v] - off
            part[LOG_FIELD, v] = -0.5 * (off * off / variance + math.log(variance) + LOG_2PI)
        else:
            part[MEAN, v], variance = mean[v] - factor[a, len(dx)], factor[a, a] * wider * wider
        part[VARIANCE, v] = variance


@kernel
def fill_student(
    u: Array,
    order: Array,
    n: int,
    wider: float,
    square: float,
    freedom: float,
    factor: Array,
    inverse: Array,
    part: Array,
) -> None:
    """Fill what Student's t says of each field given the others."""
    whole = square / (wider * wider)
    for a in range(len(u)):
        v = order[a]
        if a < n:
            off, scale = off_others(factor, inverse, n, a)
            scale *= wider * wider
            known, rest = freedom + n - 1.0, max(whole - off * off / scale, 0.0)
            scale *= (freedom + rest) / known
            half = 0.5 * (known + 1.0)
            norm = math.lgamma(half) - math.lgamma(0.5 * known)
            norm -= 0.5 * (math.log(known * scale) + LOG_PI)
            part[LOG_FIELD, v] = norm - half * math.log1p(off * off / (known * scale))
            part[MEAN, v] = u[v] - off
        else:
            known = freedom + n
            scale = factor[a, a] * wider * wider * (freedom + whole) / known
            part[MEAN, v] = -factor[a, len(u)]
        part[VARIANCE, v] = scale * known / (known - 2.0)


@kernel
def log_sum(logs: Array) -> float:
    """Return the logarithm of the sum of exponentials."""
    top, total = float(logs.max()), 0.0
    for p in range(len(logs)):
        total += math.exp(logs[p] - top)
    return top + math.log(total)
