"""Kernels of Student's t of rows of which fields are missing, each row with one of its own.

Squared scales are lower triangles, one row after the other (d (d + 1) / 2); locations are 0.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.density.components import NEGLIGIBLE, Components, append
from faust_oslrau.learner.density.gaussian_kernels import LEAST_PIVOT, LOG_2PI
from faust_oslrau.learner.density.given_others import DISTANCE, MEAN, NORM, VARIANCE, tell_columns
from faust_oslrau.learner.vector.compiler import Array, kernel

NODES = 20
"""Gaussians that stand for one Student's t."""

NODES_BELOW = 14
"""Those that are wider than the middle one. The precision of few degrees of freedom has a long tail
there."""

NODE_STEP = 0.9
"""Distance of nodes in standard deviations of the logarithmic precision. Quantiles at 1 % are then
right to 1e-5 deviations with 5 degrees of freedom, and to 1e-6 with 12."""


@kernel
def observed_first(u: Array, order: Array) -> int:
    """Fill ``order`` (d,) with the observed fields, then the missing ones; return how many are."""
    n = 0
    for v in range(len(u)):
        if u[v] == u[v]:
            order[n] = v
            n += 1
    at = n
    for v in range(len(u)):
        if u[v] != u[v]:
            order[at] = v
            at += 1
    return n


@kernel
def factorise(
    covariance: Array, u: Array, order: Array, n: int, factor: Array
) -> tuple[float, float]:
    """Return the squared distance of the ``n`` observed values of ``u``, and their log scale.

    ``factor`` (d, d + 1) gets the upper Cholesky factor of the fields in this order, and in its
    last column the whitened values.
    """
    d = len(u)
    fill_upper(covariance, order, n, factor)
    for a in range(d):
        factor[a, d] = u[order[a]] if a < n else 0.0
    square, log_scale = 0.0, 0.0
    for a in range(d):
        for b in range(min(a, n)):
            part = factor[b, a]
            for c in range(a, d + 1):
                factor[a, c] -= part * factor[b, c]
        if a < n:
            pivot = math.sqrt(max(factor[a, a], LEAST_PIVOT))
            factor[a, a] = pivot
            scale = 1.0 / pivot
            for c in range(a + 1, d + 1):
                factor[a, c] *= scale
            square += factor[a, d] * factor[a, d]
            log_scale += math.log(pivot)
    return square, log_scale


@kernel
def fill_upper(covariance: Array, order: Array, n: int, factor: Array) -> None:
    """Fill the upper triangle of ``factor`` with the fields in this order, of a lower triangle."""
    d = len(order)
    if n in (0, d):  # in their own order, which most records have, and those that are foreseen
        t = 0
        for a in range(d):
            for b in range(a + 1):
                factor[b, a] = covariance[t]
                t += 1
        return
    for a in range(d):
        for b in range(a, d):
            high, low = max(order[a], order[b]), min(order[a], order[b])
            factor[a, b] = covariance[high * (high + 1) // 2 + low]


@kernel
def log_student(square: float, log_scale: float, freedom: float, n: int) -> float:
    """Return the log-density of Student's t of ``n`` fields by a squared distance."""
    half, more = 0.5 * freedom, 0.5 * n
    norm = math.lgamma(half + more) - math.lgamma(half) - more * (math.log(half) + LOG_2PI)
    return norm - log_scale - (half + more) * math.log1p(square / freedom)


@kernel
def chi_square(square: float, freedom: float, n: int) -> float:
    """Return what a squared distance of ``n`` fields in Student's t is as one in a Gaussian.

    log(1 + square / freedom) is about a multiple of a chi-square (Bartlett 1938). The factor gives
    it the mean ``n``, with log(x - 1/2) for the digamma function of x.
    """
    if n == 0:
        return 0.0
    factor = n / math.log1p(n / (freedom - 1.0))
    return factor * math.log1p(square / freedom)


@kernel
def growth(freedom: float, square: float, n: int) -> float:
    """Return by what squared scales grow given ``n`` values at a squared distance."""
    return (freedom + square) / (freedom + n)


@kernel
def log_densities(U: Array, covariance: Array, freedom: Array, result: Array) -> None:
    """Fill ``result`` (m,) with log-densities of rows ``U`` (m, d).

    ``covariance`` (m, d (d + 1) / 2) and ``freedom`` (m,) are those of each row's Student's t.
    """
    m, d = U.shape
    order, factor = np.empty(d, np.int64), np.zeros((d, d + 1))
    for r in range(m):
        n = observed_first(U[r], order)
        square, log_scale = factorise(covariance[r], U[r], order, n, factor)
        result[r] = log_student(square, log_scale, freedom[r], n)


@kernel
def given_others(
    Z: Array, whitening: Array, log_norm: Array, freedom: Array, result: Array
) -> None:
    """Fill ``result`` (3, d, m) with what the others say of each field of columns ``Z`` (d, m).

    The log-density of the others, mean and deviation given them. ``whitening`` (m, d, d) and
    ``log_norm`` (m,) are those of Gaussians that have the squared scales as covariances.
    """
    d, m = Z.shape
    said, centre = np.empty((4 * d, m)), np.zeros(d)
    for r in range(m):
        tell_columns(Z, r, r + 1, centre, whitening[r], log_norm[r], said)
        observed = 0
        for v in range(d):
            observed += Z[v, r] == Z[v, r]
        for v in range(d):
            n = observed - (1 if Z[v, r] == Z[v, r] else 0)
            square = said[DISTANCE * d + v, r]
            log_scale = -said[NORM * d + v, r] - 0.5 * n * LOG_2PI
            scale = said[VARIANCE * d + v, r] * growth(freedom[r], square, n)
            result[0, v, r] = log_student(square, log_scale, freedom[r], n)
            result[1, v, r] = said[MEAN * d + v, r]
            result[2, v, r] = math.sqrt(scale * (1.0 + 2.0 / (freedom[r] + n - 2.0)))


@kernel
def add_students(
    U: Array, weight: Array, covariance: Array, freedom: Array, components: Components
) -> None:
    """Add Gaussians of what rows ``U`` (m, d) lack, which stand for Student's t.

    ``weight`` (m,) is its weight in each row; the others are as in `log_densities`.
    """
    m, d = U.shape
    order, factor = np.empty(d, np.int64), np.zeros((d, d + 1))
    nodes = np.empty((2, NODES))
    for r in range(m):
        n = observed_first(U[r], order)
        if n == d or weight[r] <= NEGLIGIBLE:
            continue
        square, _ = factorise(covariance[r], U[r], order, n, factor)
        fill_nodes(freedom[r] + n, nodes)
        for a in range(n, d):
            scale = math.sqrt(factor[a, a] * growth(freedom[r], square, n))
            for j in range(NODES):
                share, wide = weight[r] * nodes[0, j], scale * nodes[1, j]
                append(order[a], r, share, -factor[a, d], wide, components)


@kernel
def fill_nodes(freedom: float, nodes: Array) -> None:
    """Fill ``nodes`` (2, NODES) with weights and deviations of Gaussians that make Student's t.

    A value of Student's t is Gaussian given a precision, which is gamma distributed. The trapezoid
    rule over the logarithm of the precision leaves a sum of Gaussians. It converges quickly, as the
    density of the logarithm is smooth and falls off on both sides.
    """
    half, total = 0.5 * freedom, 0.0
    for j in range(NODES):
        log_precision = NODE_STEP * (j - NODES_BELOW) / math.sqrt(half)
        nodes[0, j] = math.exp(half * (log_precision - math.expm1(log_precision)))
        nodes[1, j] = math.exp(-0.5 * log_precision)
        total += nodes[0, j]
    for j in range(NODES):
        nodes[0, j] /= total
