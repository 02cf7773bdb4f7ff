"""Kernels that list the Gaussians of missing fields under the mixed density of an entity."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.density.components import NEGLIGIBLE, WEIGHT, Components, append
from faust_oslrau.learner.vector.compiler import Array, kernel

from .habit_kernels import Predicted, Shared
from .mixed_kernels import JOINT, MEAN, VARIANCE, fill_parts, log_sum, new_parts

NODES = 20
"""Gaussians that stand for one Student's t."""

NODES_BELOW = 14
"""Those that are wider than the middle one. The precision of few degrees of freedom has a long tail
there."""

NODE_STEP = 0.9
"""Distance of nodes in standard deviations of the logarithmic precision. Quantiles at 1 % are then
right to 1e-5 deviations with 5 degrees of freedom, and to 1e-6 with 12."""


@kernel
def add_habits(
    U: Array, network: Array, shared: Shared, predicted: Predicted, components: Components
) -> None:
    """Add all parts but the network to its Gaussians of what rows ``U`` (m, d) lack.

    ``network`` (m,) are its log-densities of these rows.
    """
    m, d = U.shape
    found, order = new_parts(d, shared), np.empty(d, np.int64)
    own, nodes = len(found) - 1, np.empty((2, NODES))
    for r in range(m):
        n = fill_parts(U[r], r, network[r], shared, predicted, order, found)
        weight = np.exp(found[:, JOINT, 0] - log_sum(found[:, JOINT, 0]))
        freedom = predicted.freedom[r] + n
        fill_nodes(freedom, nodes)
        for v in order[n:]:
            for k in range(components.n[r, v]):
                components.parameters[r, v, k, WEIGHT] *= weight[0]
            for p in range(1, own):
                if weight[p] > NEGLIGIBLE:
                    deviation = math.sqrt(found[p, VARIANCE, v])
                    append(v, r, weight[p], found[p, MEAN, v], deviation, components)
            if weight[own] > NEGLIGIBLE:
                scale = math.sqrt(found[own, VARIANCE, v] * (freedom - 2.0) / freedom)
                for j in range(NODES):
                    share, wide = weight[own] * nodes[0, j], scale * nodes[1, j]
                    append(v, r, share, found[own, MEAN, v], wide, components)


@kernel
def fill_nodes(freedom: float, nodes: Array) -> None:
    """Fill ``nodes`` (2, NODES) with weights and deviations of Gaussians that make Student's t.

    A value of Student's t is Gaussian given a precision, which is gamma distributed. The trapezoid
    rule over the logarithm of the precision leaves a sum of Gaussians. It converges quickly, as the
    density of the logarithm is smooth and falls off on both sides.
    """
    half, total = 0.5 * freedom, 0.0
    for j in range(NODES):
        log_precision = NODE_STEP * (j - NODES_BELOW) / math.sqrt(half)
        nodes[0, j] = math.exp(half * (log_precision - math.expm1(log_precision)))
        nodes[1, j] = math.exp(-0.5 * log_precision)
        total += nodes[0, j]
    nodes[0] /= total
