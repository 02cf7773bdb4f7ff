"""Kernels that list the Gaussians of missing variables given the observed ones.

Rows that lack the same variables come together, as most of what is needed depends on these alone.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.density.components import Components, append
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, fma, load, spread, store
from faust_oslrau.learner.vector.math import exp_bounded


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
