"""Distances of fields from what one Gaussian expects, each field alone and given the others."""

from __future__ import annotations

import math

import numpy as np

from ..network.layout import LEAF
from ..network.marginals import whiten
from ..vector.compiler import Array, kernel
from ..vector.lanes import fma


@kernel
def component_moments(
    nodes: Array, stats: Array, components: Array, means: Array, variances: Array
) -> None:
    """Fill ``means`` and ``variances`` (n, d) with those of ``components``, over all variables."""
    d = means.shape[1]
    for c in range(len(components)):
        i = components[c]
        offset = nodes[i]["stats"]
        if nodes[i]["kind"] == LEAF:
            means[c, 0], variances[c, 0] = nodes[i]["mean"], nodes[i]["variance"]
        else:
            for v in range(d):
                means[c, v] = stats[offset + v]
                variances[c, v] = stats[offset + 2 * d + v * (d + 1)]


@kernel
def sum_deviations(Z: Array, mean: Array, deviation: Array, result: Array) -> None:
    """Fill ``result`` (m,) with sums of abs(z) over the observed values of columns of ``Z``."""
    result[:] = 0.0
    for v in range(Z.shape[0]):
        centre, scale = mean[v], 1.0 / deviation[v]
        for r in range(Z.shape[1]):
            dx = Z[v, r] - centre
            result[r] = fma(abs(dx), scale, result[r]) if dx == dx else result[r]


@kernel
def sum_residuals(Z: Array, mean: Array, W: Array, result: Array) -> None:
    """Fill ``result`` (m,) with sums of abs(z) given the other observed values of a column.

    ``W`` (d, d) is the whitening matrix of a Gaussian, lower triangular. With the precision matrix
    P = W^T W, field v is (P dx)_v / sqrt(P_vv) standard deviations from its mean given the others.
    Missing fields are swept out of P.
    """
    d, m = Z.shape
    precision = precision_matrix(W)
    scratch = np.empty((d + 1, m))
    for v in range(d):
        for r in range(m):
            scratch[v + 1, r] = Z[v, r] - mean[v]
    result[:] = 0.0
    for v in range(d):
        whiten(precision[v], scratch, m)
        scale = 1.0 / math.sqrt(precision[v, v])
        for r in range(m):
            result[r] = fma(abs(scratch[0, r]), scale, result[r])
    for r in range(m):
        if result[r] != result[r]:
            result[r] = residuals_of_observed(precision, scratch[1:, r])


@kernel
def precision_matrix(W: Array) -> Array:
    """Return W^T W of a lower triangular matrix."""
    d = len(W)
    precision = np.zeros((d, d))
    for c in range(d):
        for a in range(c + 1):
            for b in range(c + 1):
                precision[a, b] += W[c, a] * W[c, b]
    return precision


@kernel
def residuals_of_observed(precision: Array, dx: Array) -> float:
    """Return the sum of abs(z) given the others, for one row ``dx`` (d,) with missing values."""
    d, rest = len(dx), precision.copy()
    for gone in range(d):
        if dx[gone] == dx[gone]:
            continue
        for a in range(d):
            if dx[a] == dx[a] or a > gone:
                factor = rest[a, gone] / rest[gone, gone]
                for b in range(d):
                    rest[a, b] -= factor * rest[gone, b]
    total = 0.0
    for v in range(d):
        if dx[v] == dx[v]:
            residual = 0.0
            for b in range(d):
                if dx[b] == dx[b]:
                    residual += rest[v, b] * dx[b]
            total += abs(residual) / math.sqrt(rest[v, v])
    return total
