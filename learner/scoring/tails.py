"""Kernels of how much of a few Gaussians lies further out than a row."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.density.missing_kernels import new_scratch, observed_distance
from faust_oslrau.learner.network.leaves import whitened
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    Value,
    aligned_stack,
    choose,
    load,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import exp_bounded, larger, log_positive

LEAST = 1e-300
"""Keeps logarithms finite."""


@kernel
def fill_distances(
    Z: Array, mean: Array, whitening: Array, n_missing: Array, result: Array
) -> None:
    """Fill ``result`` (k, m) with squared Mahalanobis distances of the columns of ``Z`` (d, m).

    To ``mean`` (k, d), by ``whitening`` matrices (k, d, d), lower triangular. Missing values do not
    count: the distances are those in the marginal Gaussians. ``n_missing`` (m,) says of how many
    fields; columns come in whole lanes.
    """
    aligned_stack()
    d = len(Z)
    dx = np.empty((d, WIDTH))
    for k in range(len(mean)):
        factors = whitening[k].reshape(d * d)
        for r in range(0, Z.shape[1], WIDTH):
            for v in range(d):
                gap = load(Z, v, r) - mean[k, v]
                store(dx, v, 0, choose(gap == gap, gap, 0.0))
            total = spread(0.0)
            for a in range(d):
                y = whitened(factors, a * d, a + 1, dx, 0, 0)
                total = total + y * y
            store(result, k, r, total)
    scratch = new_scratch(d)
    for r in range(len(n_missing)):
        if n_missing[r] > 0:
            for k in range(len(mean)):
                result[k, r] = observed_distance(Z[:, r], mean[k], whitening[k], scratch)[0]


@kernel
def fill_log_mass(distances: Array, weight: Array, fields: Array, result: Array) -> None:
    """Fill ``result`` (1, m) with the log of the weighted mass that lies further out.

    By squared ``distances`` (k, m), which are overwritten, in Gaussians of so many ``fields``
    (1, m). A weight (k,) of 0 leaves a Gaussian out.
    """
    aligned_stack()
    for r in range(0, distances.shape[1], WIDTH):
        n, top, total = load(fields, 0, r), spread(-np.inf), spread(0.0)
        for k in range(len(weight)):
            if weight[k] > 0.0:
                term = log_positive(weight[k]) + log_survival(load(distances, k, r), n)
                store(distances, k, r, term)
                top = larger(term, top)
        for k in range(len(weight)):
            if weight[k] > 0.0:
                total = total + exp_bounded(load(distances, k, r) - top)
        store(result, 0, r, top + log_positive(total))


@kernel
def log_survival(q: Value, fields: Value) -> Value:
    """Log-probability that a chi-square of so many degrees of freedom exceeds ``q``.

    Its cube root is nearly normal (Wilson and Hilferty 1931); the normal's tail is by Abramowitz
    and Stegun's (7.1.26), whose error in a tail is half a nat at the most. It falls with ``q``.
    """
    variance = 2.0 / (9.0 * fields)
    root = exp_bounded(log_positive(q / fields + LEAST) / 3.0)
    x = (root - (1.0 - variance)) / square_root(2.0 * variance)
    size = larger(x, 0.0 - x)
    t = 1.0 / (1.0 + 0.3275911 * size)
    p = ((1.061405429 * t - 1.453152027) * t + 1.421413741) * t
    tail = log_positive(0.5 * t * ((p - 0.284496736) * t + 0.254829592)) - size * size
    lower = log_positive(1.0 - exp_bounded(choose(x > 0.0, -1.0, tail)))
    return choose(x > 0.0, tail, lower)


@kernel
def square_root(x: Value) -> Value:
    """Return the square root of a normal x > 0."""
    return exp_bounded(0.5 * log_positive(x))


@kernel
def whitenings(covariance: Array, ridge: float) -> Array:
    """Return the whitening matrices (k, d, d) of covariances with ``ridge`` on their diagonals.

    Empty where one is not positive definite.
    """
    n, d = covariance.shape[:2]
    result = np.zeros((n, d, d))
    for k in range(n):
        L = result[k]
        for a in range(d):
            for b in range(a + 1):
                value = covariance[k, a, b] + (ridge if a == b else 0.0)
                for c in range(b):
                    value -= L[a, c] * L[b, c]
                if b < a:
                    L[a, b] = value / L[b, b]
                elif value > 0.0 and value < np.inf:
                    L[a, a] = math.sqrt(value)
                else:
                    return result[:0]
        for b in range(d):
            L[b, b] = 1.0 / L[b, b]
            for a in range(b + 1, d):
                value = 0.0
                for c in range(b, a):
                    value -= L[a, c] * L[c, b]
                L[a, b] = value / L[a, a]
    return result
