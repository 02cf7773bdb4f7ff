"""Kernels of some variables of Gaussians given the others, and their predictive mixtures."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.blocks import copy_columns
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, fma, load, spread, store

from .components import NEGLIGIBLE, Components, append


@kernel
def condition(whitening: Array, missing: Array, rest: Array) -> int:
    """Condition a Gaussian on all variables that are not ``missing`` (k,); return how many are.

    With the precision P, fills a row of ``rest`` (k, k) for each missing variable u: the inverse of
    P_uu in the columns of the missing ones, which is their covariance, and P_uu^-1 P_uo in those
    of the observed ones, which is what their deviations take from the mean.
    """
    k, n = len(missing), 0
    own = np.empty(k, np.int64)
    for a in range(k):
        if missing[a]:
            for b in range(k):
                rest[n, b] = 0.0
            for c in range(a, k):
                for b in range(c + 1):
                    rest[n, b] += whitening[c, a] * whitening[c, b]
            own[n] = a
            n += 1
    for p in range(n):  # Gauss and Jordan; a precision needs no pivoting
        pivot = rest[p, own[p]]
        rest[p, own[p]] = 1.0
        for b in range(k):
            rest[p, b] /= pivot
        for q in range(n):
            if q != p:
                factor = rest[q, own[p]]
                rest[q, own[p]] = 0.0
                for b in range(k):
                    rest[q, b] -= factor * rest[p, b]
    return n


@kernel
def condition_each(whitening: Array, missing: Array, gain: Array, deviation: Array) -> None:
    """Fill in what `Given` holds of Gaussians (K, d, d) where variables are ``missing`` (d,)."""
    d = len(missing)
    rest = np.empty((d, d))
    for k in range(len(whitening)):
        condition(whitening[k], missing, rest)
        row = 0
        for a in range(d):
            if missing[a]:
                deviation[k, row], column = math.sqrt(rest[row, a]), 0
                for b in range(d):
                    if not missing[b]:
                        gain[k, row, column] = -rest[row, b]
                        column += 1
                row += 1


@kernel
def add_gaussians(
    Z: Array,
    missing: Array,
    mean: Array,
    gain: Array,
    deviation: Array,
    widths: Array,
    share: Array,
    rows: Array,
    first: int,
    location: Array,
    scale: Array,
    components: Components,
) -> None:
    """Add Gaussians given what is observed of columns ``Z`` (d, m), all lacking ``missing`` (d,).

    These are the variables from ``first`` on. ``mean`` (K, d), ``gain`` and ``deviation`` are the
    Gaussians', as `Given` has them; deviations are ``widths`` (K,) times as large. ``share`` (K, m)
    is the probability of each in each column, ``rows`` (m,) are the columns' places among the
    ``components``.
    """
    aligned_stack()
    (d, m), n, K = Z.shape, deviation.shape[1], len(mean)
    block, off, centre = np.zeros((d, WIDTH)), np.empty((d - n, WIDTH)), np.empty((n * K, WIDTH))
    lacking, known = np.flatnonzero(missing), np.flatnonzero(~missing)
    for start in range(0, m, WIDTH):
        lanes = min(WIDTH, m - start)
        copy_columns(Z, start, lanes, block)
        for k in range(K):
            if share[k, start : start + lanes].max() <= NEGLIGIBLE:
                continue
            for b in range(d - n):
                store(off, b, 0, load(block, known[b], 0) - mean[k, known[b]])
            for a in range(n):
                total, v = spread(mean[k, lacking[a]]), first + lacking[a]
                for b in range(d - n):
                    total = fma(gain[k, a, b], load(off, b, 0), total)
                store(centre, a * K + k, 0, fma(total, scale[v], location[v]))
        for i in range(lanes):
            r, some = rows[start + i], np.flatnonzero(share[:, start + i] > NEGLIGIBLE)
            for a in range(n):
                v = first + lacking[a]
                for one in some:
                    wide = widths[one] * scale[v] * deviation[one, a]
                    append(v, r, share[one, start + i], centre[a * K + one, i], wide, components)
