"""The Gaussians that a network has for the missing variables of rows, given the observed ones."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.components import NEGLIGIBLE, Components, append
from faust_oslrau.learner.density.given_others import condition
from faust_oslrau.learner.density.missing_kernels import lack_the_same
from faust_oslrau.learner.network.evaluation import evaluate
from faust_oslrau.learner.network.layout import (
    LEAF,
    MULTIVARIATE_LEAF,
    NIL,
    NODES_TOP,
    PRODUCT,
    Pools,
    total_weight,
)
from faust_oslrau.learner.network.leaves import parameters
from faust_oslrau.learner.network.structure import Network
from faust_oslrau.learner.vector.blocks import copy_columns, new_block
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import exp_bounded

from .scaling import Scaling


def most_leaves(network: Network) -> int:
    """Return the largest number of leaves that a variable has."""
    nodes = network.pools.nodes[network.live]
    leaves = nodes[np.isin(nodes["kind"], (LEAF, MULTIVARIATE_LEAF))]
    starts, sizes = leaves["scope"], leaves["n_scope"]
    at = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    return int(np.bincount(network.pools.scopes[at]).max())


def add_network(network: Network, Z: FloatArray, scaling: Scaling, components: Components) -> None:
    """Add the network's Gaussians for the missing values of columns ``Z`` (d, m).

    ``scaling`` leads from its units to those of the components.
    """
    m, n_nodes = Z.shape[1], int(network.header[NODES_TOP])
    block = new_block(len(Z), max(m, 2))  # one row takes whole lanes, too
    copy_columns(np.ascontiguousarray(Z), 0, m, block)
    values = np.empty((n_nodes, block.shape[1]))
    evaluate(network.pools, block, max(m, 2), values, np.arange(n_nodes), NIL)
    descend(
        network.pools, network.live, block, m, values, scaling.location, scaling.scale, components
    )


@kernel
def descend(
    pools: Pools,
    live: Array,
    Z: Array,
    m: int,
    values: Array,
    location: Array,
    scale: Array,
    components: Components,
) -> None:
    """Add the leaves of a network by their shares; ``values`` (nodes, .) are log-densities.

    The share of a node is its probability given what is observed in ``m`` columns of ``Z`` (d, .):
    that of the child of a sum follows from Bayes' rule, that of the child of a product is the
    product's.
    """
    nodes, edges, share = pools.nodes, pools.edges, np.zeros((len(values), m))
    share[live[-1]] = 1.0
    for i in live[::-1]:
        kind, total = nodes[i]["kind"], total_weight(pools, i)
        if kind == LEAF:
            v = nodes[i]["scope"]
            mean = location[v] + scale[v] * nodes[i]["mean"]
            deviation = scale[v] / math.sqrt(nodes[i]["precision"])
            for r in range(m):
                if Z[v, r] != Z[v, r]:
                    append(v, r, share[i, r], mean, deviation, components)
        elif kind == MULTIVARIATE_LEAF:
            variables, mean, W = parameters(i, nodes, pools.scopes, pools.stats)
            add_gaussian(Z, variables, mean, W, share[i], location, scale, components)
        edge = nodes[i]["first_edge"]
        while edge != NIL:
            child = edges[edge]["child"]
            for r in range(m):
                share[child, r] = share[i, r]
                if kind != PRODUCT and share[i, r] > NEGLIGIBLE:
                    likelier = exp_bounded(values[child, r] - values[i, r])
                    share[child, r] *= edges[edge]["weight"] / total * likelier
            edge = edges[edge]["next"]


@kernel
def add_gaussian(
    Z: Array,
    variables: Array,
    mean: Array,
    whitening: Array,
    share: Array,
    location: Array,
    scale: Array,
    components: Components,
) -> None:
    """Add one Gaussian over the ``variables`` (k,) given what is observed of ``Z`` (d, .).

    ``mean`` (k,) and ``whitening`` (k, k) are its parameters, ``share`` (m,) is its probability in
    each row. Rows that lack the same variables share the gains.
    """
    k, before = len(variables), -1
    missing, directions = np.zeros(k, np.bool_), np.empty((2 * k, k))
    gain, conditional = np.empty((k, k)), np.empty(k)
    for r in range(len(share)):
        if share[r] <= NEGLIGIBLE:
            continue
        if before < 0 or not lack_the_same(Z, variables, before, r):
            for a in range(k):
                missing[a] = Z[variables[a], r] != Z[variables[a], r]
            condition(whitening, missing, directions, gain, conditional)
        row, before = 0, r
        for a in range(k):
            if not missing[a]:
                continue
            centre, v, column = mean[a], variables[a], 0
            for b in range(k):
                if not missing[b]:
                    centre += gain[row, column] * (Z[variables[b], r] - mean[b])
                    column += 1
            deviation = scale[v] * conditional[row]
            append(v, r, share[r], location[v] + scale[v] * centre, deviation, components)
            row += 1
