"""Kernels that fit a few Gaussians to some rows: starting points, and expectation-maximisation."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import exp_bounded, log_positive

NEGLIGIBLE = 1e-4
"""Share of a row in a Gaussian from which on it counts there."""


@kernel
def spread_out(Z: Array, k: int, turns: Array) -> Array:
    """Choose ``k`` of the columns of ``Z`` (d, n) far from each other, as k-means++ does.

    The first is drawn evenly, each next one in proportion to its squared distance from those
    before; ``turns`` (k,) in [0, 1) take the place of random numbers. Missing values count
    nothing.
    """
    d, n = Z.shape
    chosen = np.empty(k, np.int64)
    chosen[0] = int(turns[0] * n)
    distance = np.full(n, np.inf)
    for c in range(1, k):
        total = 0.0
        for r in range(n):
            gap = 0.0
            for v in range(d):
                dz = Z[v, r] - Z[v, chosen[c - 1]]
                if dz == dz:
                    gap += dz * dz
            distance[r] = min(distance[r], gap)
            total += distance[r]
        left, at = turns[c] * total, 0
        while at < n - 1 and left >= distance[at]:
            left -= distance[at]
            at += 1
        chosen[c] = at
    return chosen


@kernel
def fill_shares(distances: Array, weight: Array, whitening: Array, shares: Array) -> None:
    """Fill ``shares`` (k, n) with the probabilities that rows belong to each Gaussian.

    By squared ``distances`` (k, >= n), the weights (k,) and whitening matrices (k, d, d).
    """
    k, n = shares.shape
    log_scale = np.empty(k)
    for c in range(k):
        log_scale[c] = log_positive(weight[c])
        for v in range(whitening.shape[1]):
            log_scale[c] += log_positive(whitening[c, v, v])
    for r in range(n):
        top, total = -np.inf, 0.0
        for c in range(k):
            shares[c, r] = log_scale[c] - 0.5 * distances[c, r]
            top = max(top, shares[c, r])
        for c in range(k):
            shares[c, r] = exp_bounded(shares[c, r] - top)
            total += shares[c, r]
        for c in range(k):
            shares[c, r] /= total


@kernel
def fill_moments(rows: Array, shares: Array, means: Array, scatters: Array) -> None:
    """Fill ``means`` (k, d) and scatter matrices (k, d, d) of rows (n, d) by their shares (k, n).

    A missing value is at the mean. What that takes from a scatter is made up for by the share of
    the values that are observed, which keeps the matrix positive semi-definite. The mean of what
    is not observed stays.
    """
    n, d = rows.shape
    scatters[:] = 0.0
    dx, seen = np.empty(d), np.empty(d)
    for k in range(len(shares)):
        fill_mean(rows, shares[k], means[k], seen)
        for r in range(n):
            if shares[k, r] > NEGLIGIBLE:
                for v in range(d):
                    gap = rows[r, v] - means[k, v]
                    dx[v] = gap if gap == gap else 0.0
                for a in range(d):
                    along = shares[k, r] * dx[a]
                    for b in range(a + 1):
                        scatters[k, a, b] += along * dx[b]
        for a in range(d):
            for b in range(a + 1):
                if seen[a] * seen[b] > 0.0:
                    scatters[k, a, b] /= math.sqrt(seen[a] * seen[b])
                scatters[k, b, a] = scatters[k, a, b]


@kernel
def fill_mean(rows: Array, shares: Array, mean: Array, seen: Array) -> None:
    """Fill ``mean`` (d,) of rows (n, d), and ``seen`` (d,), the share of observed values."""
    everything = 0.0
    total = np.zeros(len(mean))
    seen[:] = 0.0
    for r in range(len(rows)):
        if shares[r] > NEGLIGIBLE:
            everything += shares[r]
            for v in range(len(mean)):
                if rows[r, v] == rows[r, v]:
                    seen[v] += shares[r]
                    total[v] += shares[r] * rows[r, v]
    for v in range(len(mean)):
        if seen[v] > 0.0:
            mean[v] = total[v] / seen[v]
            seen[v] /= everything


@kernel
def with_background(weight: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Return means (k + 1, d) and covariances (k + 1, d, d), the last of all Gaussians together."""
    k, d = mean.shape
    means, covariances = np.zeros((k + 1, d)), np.zeros((k + 1, d, d))
    means[:k], covariances[:k] = mean, covariance
    total = weight.sum()
    for c in range(k):
        for v in range(d):
            means[k, v] += weight[c] / total * mean[c, v]
    for c in range(k):
        for a in range(d):
            off = mean[c, a] - means[k, a]
            for b in range(d):
                apart = off * (mean[c, b] - means[k, b])
                covariances[k, a, b] += weight[c] / total * (covariance[c, a, b] + apart)
    return means, covariances
