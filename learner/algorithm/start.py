"""The network that learning starts from."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from faust_oslrau.learner.network.editing import add_edge, new_node, take_statistics
from faust_oslrau.learner.network.layout import (
    BACKGROUND,
    MULTIVARIATE_LEAF,
    NIL,
    PRODUCT,
    ROOT,
    SUM,
    moments_length,
    statistics_length,
)
from faust_oslrau.learner.network.leaves import refresh_multivariate
from faust_oslrau.learner.network.structure import Network

from .create_factored_model import create_factored_model

WIDEST_BACKGROUND = 128
"""Most variables of one leaf of the background, whose cost grows with their square."""


def background_nodes(d: int) -> int:
    """Return the number of nodes of a background over ``d`` variables."""
    n_blocks = len(background_blocks(d))
    return n_blocks if n_blocks == 1 else n_blocks + 1


def background_blocks(d: int) -> list[range]:
    """Divide ``d`` variables into as few blocks of neighbours as fit, as equal as possible."""
    n = -(-d // WIDEST_BACKGROUND)
    bounds = [d * i // n for i in range(n + 1)]
    return [range(*pair) for pair in pairwise(bounds)]


def initial_network(
    n_variables: int, n_components: int, variance_floor: float, *, background: bool
) -> Network:
    """Return a sum over equal products of N(0, 1) leaves, or a single such product.

    With a background the root is always a sum, whose first child is a multivariate N(0, I), or a
    product of several.
    """
    d, k = n_variables, n_components
    n_nodes = k * (d + 1) + 1 + background_nodes(d)
    n_stats = (k + 1) * moments_length(d) + len(background_blocks(d)) * statistics_length(
        MULTIVARIATE_LEAF, min(d, WIDEST_BACKGROUND)
    )
    network = Network(d, n_nodes, n_nodes, 0, n_stats)
    components = [
        create_factored_model(network.pools, 0, d, np.zeros(d), np.ones(d), variance_floor, NIL)
        for _ in range(k)
    ]
    if background:
        network.header[BACKGROUND] = add_background(network, variance_floor)
        components.insert(0, int(network.header[BACKGROUND]))
    network.header[ROOT] = components[0]
    if len(components) > 1:
        network.header[ROOT] = new_node(network.pools, SUM, 0, d, NIL)
        for component in components:
            add_edge(network.pools, network.root, component, 1.0)
    return network


def add_background(network: Network, variance_floor: float) -> int:
    """Add N(0, I) over all variables: a leaf, or a product of leaves over blocks of them."""
    d = network.n_variables
    blocks = background_blocks(d)
    leaves = [add_standard_gaussian(network, block, variance_floor) for block in blocks]
    if len(leaves) == 1:
        return leaves[0]
    product = new_node(network.pools, PRODUCT, 0, d, NIL)
    network.nodes[product]["stats"] = take_statistics(network.pools, moments_length(d))
    for leaf in leaves:
        add_edge(network.pools, product, leaf, 1.0)
    return product


def add_standard_gaussian(network: Network, block: range, variance_floor: float) -> int:
    """Add a leaf N(0, I) over neighbouring variables, which counts as one observation."""
    k = len(block)
    # the first entries of the pool of scopes are the variables themselves
    leaf = new_node(network.pools, MULTIVARIATE_LEAF, block.start, k, NIL)
    start = take_statistics(network.pools, statistics_length(MULTIVARIATE_LEAF, k))
    network.nodes[leaf]["stats"] = start
    network.stats[start + k : start + 2 * k] = 1.0
    matrix = network.stats[start + 2 * k : start + moments_length(k)].reshape(k, k)
    matrix[:] = np.tril(np.ones((k, k)))  # variances and pair counts 1, covariances 0
    refresh_multivariate(leaf, network.nodes, network.stats, variance_floor)
    return leaf
