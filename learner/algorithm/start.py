"""The network that learning starts from."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.network.editing import add_edge, new_node, take_statistics
from faust_oslrau.learner.network.layout import (
    BACKGROUND,
    MULTIVARIATE_LEAF,
    NIL,
    ROOT,
    SUM,
    moments_length,
    statistics_length,
)
from faust_oslrau.learner.network.leaves import refresh_multivariate
from faust_oslrau.learner.network.structure import Network

from .create_factored_model import create_factored_model


def initial_network(
    n_variables: int, n_components: int, variance_floor: float, *, background: bool
) -> Network:
    """Return a sum over equal products of N(0, 1) leaves, or a single such product.

    With a background the root is always a sum, whose first child is a multivariate N(0, I).
    """
    d, k = n_variables, n_components
    n_stats = k * moments_length(d) + statistics_length(MULTIVARIATE_LEAF, d)
    network = Network(d, k * (d + 1) + 2, k * (d + 1) + 1, 0, n_stats)
    components = [
        create_factored_model(network.pools, 0, d, np.zeros(d), np.ones(d), variance_floor, NIL)
        for _ in range(k)
    ]
    if background:
        network.header[BACKGROUND] = add_standard_gaussian(network, variance_floor)
        components.insert(0, int(network.header[BACKGROUND]))
    network.header[ROOT] = components[0]
    if len(components) > 1:
        network.header[ROOT] = new_node(network.pools, SUM, 0, d, NIL)
        for component in components:
            add_edge(network.pools, network.root, component, 1.0)
    return network


def add_standard_gaussian(network: Network, variance_floor: float) -> int:
    """Add a leaf N(0, I) over all variables, which counts as one observation."""
    d = network.n_variables
    leaf = new_node(network.pools, MULTIVARIATE_LEAF, 0, d, NIL)
    start = take_statistics(network.pools, statistics_length(MULTIVARIATE_LEAF, d))
    network.nodes[leaf]["stats"] = start
    network.stats[start + d : start + 2 * d] = 1.0
    matrix = network.stats[start + 2 * d : start + moments_length(d)].reshape(d, d)
    matrix[:] = np.tril(np.ones((d, d)))  # variances and pair counts 1, covariances 0
    refresh_multivariate(leaf, network.nodes, network.stats, variance_floor)
    return leaf
