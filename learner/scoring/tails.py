"""How much of a few Gaussians lies further out than a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    Value,
    aligned_stack,
    choose,
    load,
    padded,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import exp_bounded, larger, log_positive

FloatArray = NDArray[np.float64]

LEAST = 1e-300
"""Keeps logarithms finite."""


def log_mass(distances: FloatArray, weight: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the log (m,) of the mass further out than the ``rows`` (m, d), at most 0.

    By squared ``distances`` (k, m) of what is observed of them from Gaussians of this ``weight``
    (k,), of which 0 leaves one out.
    """
    (k, m), width = distances.shape, padded(max(len(rows), 2))
    squares, fields, result = np.zeros((k, width)), np.ones((1, width)), np.empty((1, width))
    squares[:, :m] = distances
    fields[0, :m] = np.maximum(np.count_nonzero(~np.isnan(rows), axis=1), 1)
    fill_log_mass(squares, weight, fields, result)
    return np.minimum(result[0, :m], 0.0)


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
