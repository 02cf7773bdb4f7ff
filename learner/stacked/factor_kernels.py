"""Kernels of factors that blocks of variables share, and of the matrix products that they need.

Given the factors f, a block x has the whitening matrix W, so that y = W (x - mean - A f) is
independent N(0, 1), A being its loadings. With the gains G = W A, what the block says of f has the
precision G^T G and the information G^T W (x - mean). Where variables are missing, y moves along
their columns of W: only what is across them counts.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    aligned_stack,
    fma,
    load,
    spread,
    store,
)

from .missing_kernels import missing_directions, new_scratch, whiten_observed

NONE = -1
"""In place of a variable."""


@kernel
def multiply(A: Array, B: Array, lower_left: bool, lower_right: bool, result: Array) -> None:
    """Fill ``result`` (n, p) with the product of ``A`` (n, m) and ``B`` (m, p), summed in order.

    What a lower triangle on either side makes 0 is left out.
    """
    aligned_stack()
    n, p = result.shape
    m = len(B)
    strip, found = np.zeros((m, WIDTH)), np.empty((2, WIDTH))
    for c in range(0, p, WIDTH):  # as many columns as lanes at a time, which fit into the cache
        end = min(c + WIDTH, p)
        for b in range(m):
            for i in range(c, end):
                strip[b, i - c] = B[b, i]
        for a in range(0, n, 2):
            other = min(a + 1, n - 1)  # two rows at a time take each value from memory once
            one, two = spread(0.0), spread(0.0)
            for b in range(c if lower_right else 0, other + 1 if lower_left else m):
                values = load(strip, b, 0)
                one = fma(A[a, b], values, one)
                two = fma(A[other, b], values, two)
            store(found, 0, 0, one)
            store(found, 1, 0, two)
            for b in range(c, end):
                result[a, b], result[other, b] = found[0, b - c], found[1, b - c]


@kernel
def projected_squares(Z: Array, mean: Array, projection: Array, result: Array) -> None:
    """Fill ``result`` (K, m) with |P (z - mean)|^2 of columns of ``Z`` (d, m).

    It is NaN where a value is missing.
    ``projection`` (K, q, d) has an even number of rows.
    """
    aligned_stack()
    K, q, d = projection.shape
    m = Z.shape[1]
    dx, found = np.zeros((d, WIDTH)), np.empty((1, WIDTH))
    for r in range(0, m, WIDTH):
        n = min(WIDTH, m - r)
        for v in range(d):
            for i in range(n):
                dx[v, i] = Z[v, r + i] - mean[v]
        for k in range(K):
            total = spread(0.0)
            for j in range(0, q, 2):  # two rows at a time take each value from memory once
                one, two = spread(0.0), spread(0.0)
                for v in range(d):
                    difference = load(dx, v, 0)
                    one = fma(projection[k, j, v], difference, one)
                    two = fma(projection[k, j + 1, v], difference, two)
                total = fma(one, one, total)
                total = fma(two, two, total)
            store(found, 0, 0, total)
            for i in range(n):
                result[k, r + i] = found[0, i]


@kernel
def tell_factors(
    Z: Array, mean: Array, whitening: Array, gains: Array, information: Array, precision: Array
) -> None:
    """Tell what columns of a block (size, m) say of the factors by each Gaussian.

    Fills ``information`` (K, m, q), and takes from ``precision`` (K, m, q, q), which is that of
    complete columns, what is missing. ``gains`` are (K, size, q).
    """
    K, size, q = gains.shape
    scratch, along = new_scratch(size), np.empty(q)
    y = scratch[2 * size]
    for r in range(Z.shape[1]):
        z = Z[:, r]
        for k in range(K):
            whiten_observed(z, mean[k], whitening[k], NONE, y)
            add_rows(y, gains[k], information[k, r])
            n, _ = missing_directions(z, whitening[k], scratch)
            for i in range(n):
                along[:] = 0.0
                add_rows(scratch[i], gains[k], along)
                length = 0.0
                for a in range(size):
                    length = fma(scratch[i, a], y[a], length)
                for j in range(q):
                    information[k, r, j] -= length * along[j]
                    for other in range(q):
                        precision[k, r, j, other] -= along[j] * along[other]


@kernel
def add_rows(weights: Array, rows: Array, total: Array) -> None:
    """Add ``rows`` (n, q), each times its weight, to ``total`` (q,)."""
    for a in range(len(rows)):
        for j in range(len(total)):
            total[j] = fma(weights[a], rows[a, j], total[j])


@kernel
def squares_of_products(factor: Array, x: Array, result: Array) -> None:
    """Fill ``result`` (n,) with |F x|^2 of lower triangles F (n, q, q) and vectors ``x`` (n, q)."""
    for i in range(len(x)):
        result[i] = 0.0
        for a in range(x.shape[1]):
            total = 0.0
            for b in range(a + 1):
                total = fma(factor[i, a, b], x[i, b], total)
            result[i] = fma(total, total, result[i])
