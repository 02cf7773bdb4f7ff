"""Kernels of Student's t and Gaussians of a row of which fields are missing.

Covariances are lower triangles, one row after the other (d (d + 1) / 2); those of Student's t are
its squared scales.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel

LEAST_PIVOT = 1e-9
"""Least square of a Cholesky factor's diagonal, where rounding leaves less."""

LOG_PI, LOG_2PI = math.log(math.pi), math.log(2.0 * math.pi)


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
    """Return the log-density of Student's t of ``n`` fields by a squared distance.

    That of a Gaussian if the degrees of freedom are infinite.
    """
    if freedom == np.inf:
        return -log_scale - 0.5 * (square + n * LOG_2PI)
    half = 0.5 * (freedom + n)
    norm = math.lgamma(half) - math.lgamma(0.5 * freedom) - 0.5 * n * (math.log(freedom) + LOG_PI)
    return norm - log_scale - half * math.log1p(square / freedom)


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
