"""Kernels that list the Gaussians of missing variables given the observed ones.

Rows that lack the same variables come together, as most of what is needed depends on these alone.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.queries.components import NEGLIGIBLE, Components, append
from faust_oslrau.learner.queries.predictive import condition
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, fma, load, spread, store
from faust_oslrau.learner.vector.math import exp_bounded

from .product_kernels import copy_rows


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
        copy_rows(Z, start, lanes, block)
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


@kernel
def add_products(
    missing: Array,
    first: Array,
    mean: Array,
    deviation: Array,
    W: Array,
    share: Array,
    shares: Array,
    rows: Array,
    location: Array,
    scale: Array,
    components: Components,
) -> None:
    """Add the leaves of ``missing`` (d,) variables, each with its weight in all products.

    ``share`` (2, m) are the probabilities of the product of marginals and of the sum of products,
    ``shares`` (m, K) those of the products in their sum, ``rows`` (m,) the columns' places among
    the ``components``. ``deviation`` (n,) are the leaves'; the others are as `SharedProducts` has
    them.
    """
    aligned_stack()
    m, K = shares.shape
    own, weight = np.zeros((K + 1, WIDTH)), np.empty((len(mean), WIDTH))
    for start in range(0, m, WIDTH):
        lanes = min(WIDTH, m - start)
        for i in range(lanes):
            own[0, i] = share[0, start + i]
            for k in range(K):
                own[k + 1, i] = share[1, start + i] * shares[start + i, k]
        for v in range(len(missing)):
            if not missing[v]:
                continue
            for n in range(first[v], first[v + 1]):
                total = spread(0.0)
                for k in range(K + 1):
                    total = fma(W[n, k], load(own, k, 0), total)
                store(weight, n, 0, total)
            for i in range(lanes):
                for n in range(first[v], first[v + 1]):
                    centre, wide = location[v] + scale[v] * mean[n], scale[v] * deviation[n]
                    append(v, rows[start + i], weight[n, i], centre, wide, components)


@kernel
def share_out(
    experts: Array, log_density: Array, weight: Array, share: Array, result: Array
) -> None:
    """Fill ``result`` (E, m) with the probability of each child of the root in each row.

    ``experts`` (m, E) and ``log_density`` (m,) are log-densities of the children and the root.
    """
    for e in range(len(weight)):
        for r in range(len(share)):
            likelier = exp_bounded(experts[r, e] - log_density[r])
            result[e, r] = share[r] * weight[e] * likelier
