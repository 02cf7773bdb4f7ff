"""Kernels that list the Gaussians of missing fields under the mixed density of an entity."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.density.components import NEGLIGIBLE, WEIGHT, Components, append
from faust_oslrau.learner.vector.compiler import Array, kernel

from .habit_kernels import NETWORK, Predicted, Shared, observed_first
from .mixed_kernels import JOINT, MEAN, VARIANCE, fill_parts, log_sum

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
    (m, d), most = U.shape, 2 * len(shared.weight) + 3 + len(shared.first_weight)
    every, factor, inverse = np.empty((most, 4, d)), np.zeros((d, d + 1)), np.zeros((d, d))
    order, every_weight, nodes = np.empty(d, np.int64), np.empty(most), np.empty((2, NODES))
    own = 1 + 2 * len(shared.weight)
    for r in range(m):
        n = observed_first(U[r], order)
        parts = fill_parts(U[r], r, order, n, shared, predicted, factor, inverse, every)
        found, weight = every[:parts], every_weight[:parts]
        found[0, JOINT, 0] = math.log(predicted.weight[r, NETWORK]) + network[r]
        whole = log_sum(found[:, JOINT, 0])
        for p in range(parts):
            weight[p] = math.exp(found[p, JOINT, 0] - whole)
        freedom = predicted.freedom[r] + n
        fill_nodes(freedom, nodes)
        for v in order[n:]:
            for k in range(components.n[r, v]):
                components.parameters[r, v, k, WEIGHT] *= weight[0]
            for p in range(1, parts):
                if weight[p] <= NEGLIGIBLE:
                    continue
                mean, deviation = found[p, MEAN, v], math.sqrt(found[p, VARIANCE, v])
                if p < own or p > own + 1:
                    append(v, r, weight[p], mean, deviation, components)
                    continue
                scale = deviation * math.sqrt((freedom - 2.0) / freedom)
                for j in range(NODES):
                    append(v, r, weight[p] * nodes[0, j], mean, scale * nodes[1, j], components)


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
