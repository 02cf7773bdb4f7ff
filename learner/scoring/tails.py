"""How much of a few Gaussians lies further out than a row."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
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
from faust_oslrau.learner.vector.math import exp_bounded, larger, log_positive, smaller

LEAST = 1e-300
"""Keeps logarithms finite."""


def log_mass(distances: FloatArray, weight: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the log (m,) of the mass further out than the ``rows`` (m, d), at most 0.

    By squared ``distances`` (k, m) of what is observed of them from Gaussians of this ``weight``
    (k,).
    """
    result = np.empty(len(rows))
    rows = np.ascontiguousarray(rows)  # kernels are compiled for no other layout
    fill_log_mass(distances, weight, rows, result)
    return result


@kernel
def fill_log_mass(distances: Array, weight: Array, rows: Array, result: Array) -> None:
    """Fill ``result`` (m,) with the log of the weighted mass that lies further out."""
    aligned_stack()
    terms, fields, found = np.zeros((len(weight), WIDTH)), np.ones((1, WIDTH)), np.empty((1, WIDTH))
    for r in range(0, len(rows), WIDTH):
        some = min(WIDTH, len(rows) - r)
        for i in range(some):
            known = 0.0
            for v in range(rows.shape[1]):
                known += rows[r + i, v] == rows[r + i, v]
            fields[0, i] = max(known, 1.0)
            for k in range(len(weight)):
                terms[k, i] = distances[k, r + i]
        n, top, total = load(fields, 0, 0), spread(-np.inf), spread(0.0)
        for k in range(len(weight)):
            term = log_positive(weight[k]) + log_survival(load(terms, k, 0), n)
            store(terms, k, 0, term)
            top = larger(term, top)
        for k in range(len(weight)):
            total = total + exp_bounded(load(terms, k, 0) - top)
        store(found, 0, 0, smaller(top + log_positive(total), 0.0))
        for i in range(some):
            result[r + i] = found[0, i]


@kernel
def log_survival(q: Value, fields: Value) -> Value:
    """Log-probability that a chi-square of so many degrees of freedom exceeds ``q``.

    Its cube root is nearly normal (Wilson and Hilferty 1931); the normal's tail is by Abramowitz
    and Stegun's (7.1.26), whose error in a tail is half a nat at the most. It falls with ``q``.
    """
    variance = 2.0 / (9.0 * fields)
    root = exp_bounded(log_positive(q / fields + LEAST) / 3.0)
    x = (root - (1.0 - variance)) / exp_bounded(0.5 * log_positive(2.0 * variance))
    size = larger(x, 0.0 - x)
    t = 1.0 / (1.0 + 0.3275911 * size)
    p = ((1.061405429 * t - 1.453152027) * t + 1.421413741) * t
    tail = log_positive(0.5 * t * ((p - 0.284496736) * t + 0.254829592)) - size * size
    lower = log_positive(1.0 - exp_bounded(choose(x > 0.0, -1.0, tail)))
    return choose(x > 0.0, tail, lower)
