"""Kernels of some variables of Gaussians given the others, and their predictive mixtures."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.vector.blocks import copy_columns
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, fma, load, spread, store

from .components import NEGLIGIBLE, Components, append
from .missing_kernels import add_direction, conditional_covariance, solve_missing


@kernel
def condition(
    whitening: Array, missing: Array, directions: Array, gain: Array, deviation: Array
) -> None:
    """Condition a Gaussian on all variables that are not ``missing`` (k,).

    Fills ``gain`` (missing, observed) with what means gain by each deviation of an observed
    variable, and ``deviation`` (missing,). ``directions`` (2 k, k) is scratch.
    """
    k, n, observed = len(missing), 0, 0
    for a in range(k):
        if missing[a]:
            add_direction(whitening, a, n, directions)
            n += 1
    covariance, y, solution = np.empty((n, n)), np.empty(k), np.empty(n)
    conditional_covariance(n, k, directions, covariance)
    for i in range(n):
        deviation[i] = math.sqrt(covariance[i, i])
    for b in range(k):
        if not missing[b]:
            for a in range(k):
                y[a] = whitening[a, b]
            solve_missing(n, y, directions, solution)
            for i in range(n):
                gain[i, observed] = solution[i]
            observed += 1


@kernel
def condition_each(whitening: Array, missing: Array, gain: Array, deviation: Array) -> None:
    """Fill in what `Given` holds of Gaussians (K, d, d) where variables are ``missing`` (d,)."""
    d = len(missing)
    directions = np.empty((2 * d, d))
    for k in range(len(whitening)):
        condition(whitening[k], missing, directions, gain[k], deviation[k])


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
