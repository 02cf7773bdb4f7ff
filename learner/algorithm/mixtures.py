"""Mixtures beside the grown components: how large they are, and where they begin.

One is of Gaussians over all variables, the other of products of mixtures of single variables, whose
leaves lie at frequent values and quantiles. Expectation-maximisation fits both to the first records
of a stream; from there on they learn each record once (`expectation_maximisation`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.atoms import atoms_and_quantiles
from faust_oslrau.learner.density.gaussian_kernels import LEAST_VARIANCE
from faust_oslrau.learner.density.gaussian_mixture import (
    FARTHEST,
    SWEEPS,
    GaussianMixture,
    enough_components,
)
from faust_oslrau.learner.network.editing import add_edge, new_node, take_statistics
from faust_oslrau.learner.network.layout import (
    LEAF,
    MULTIVARIATE_LEAF,
    NIL,
    PRODUCT,
    SUM,
    moments_length,
    statistics_length,
    total_weight,
)
from faust_oslrau.learner.network.leaves import refresh_multivariate
from faust_oslrau.learner.network.structure import Network

from .expectation_maximisation import fit_products
from .start import background_blocks

FIRST_RECORDS = 480
"""Records that the mixtures begin with: five mini-batches of a stream, of which a few are held
back. With 240 they know less, and with 990 they come late."""

BUDGET_SHARE, MOST_NODES = 3, 640
"""One part in this many of the node budget is for mixtures, and the most nodes that they take."""

MOST_GAUSSIANS, GAUSSIAN_PARAMETERS = 24, 24_000

RECORDS_PER_PRODUCT = 14
"""Of the first records."""

LEAVES = 40.0
"""Leaves of a variable in a product, times the root of the number of variables."""

FEWEST_LEAVES = 4

SHRINKAGE = 1.0
"""Records' worth by which a covariance is drawn to the pooled one."""


class Sizes(NamedTuple):
    """Most Gaussians, most products and most leaves of a variable in a product."""

    gaussians: int
    products: int
    leaves: int

    def nodes(self, d: int) -> int:
        """Return the most nodes that mixtures over ``d`` variables have."""
        products = 1 + self.products * (1 + d * (1 + self.leaves)) if self.products else 0
        return products + (1 + self.gaussians if self.gaussians else 0)


def mixture_sizes(d: int, max_nodes: int) -> Sizes:
    """Return the sizes of the mixtures in a network of at most ``max_nodes`` nodes."""
    if len(background_blocks(d)) > 1:
        return Sizes(0, 0, 0)
    room = min(max_nodes // BUDGET_SHARE, MOST_NODES)
    parameters = (d + 1) * (d + 2) // 2
    gaussians = min(GAUSSIAN_PARAMETERS // parameters, MOST_GAUSSIANS, room // 4)
    leaves = max(int(LEAVES / d**0.5), FEWEST_LEAVES)
    products = max(room - gaussians - 2, 0) // (1 + d * (1 + leaves))
    return Sizes(gaussians, products, leaves)


class Leaves(NamedTuple):
    """Leaves of one variable that a mixture begins with: parts in it, means and variances (J,)."""

    part: FloatArray
    mean: FloatArray
    variance: FloatArray

    @classmethod
    def of_values(cls, z: FloatArray, most: int) -> Leaves:
        """Place at most ``most`` leaves by the values (m,) of a variable."""
        z = z[~np.isnan(z)]
        if len(z) == 0:  # N(0, 1), as in every first network
            return cls(np.ones(1), np.zeros(1), np.ones(1))
        values, counts = np.unique(z, return_counts=True)
        mean, variance, n = values, np.full(len(values), LEAST_VARIANCE), counts * 1.0
        if len(values) > most:
            mean, variance, n = atoms_and_quantiles(values, counts, most)
        # the widest one first: a sum measures the others by it
        order = np.argsort(-variance, kind="stable")
        return cls(n[order] / n.sum(), mean[order], variance[order])

    def weights(self, z: FloatArray) -> FloatArray:
        """Return weights (K, J) in mixtures around values (K,): half of them by what fits these."""
        scaled = (z[:, None] - self.mean) ** 2 / self.variance
        own = softmax(np.log(self.part) - 0.5 * (scaled + np.log(self.variance)), axis=1)
        return np.asarray(0.5 * (self.part + np.where(np.isnan(own), self.part, own)))


def add_mixtures(network: Network, Z: FloatArray, sizes: Sizes, variance_floor: float) -> None:
    """Add mixtures that are fitted to the columns of ``Z`` (d, m) as children of the root.

    Each has as much weight as all other children together.
    """
    d, rng = len(Z), np.random.default_rng(0)
    n_stats = sizes.gaussians * statistics_length(MULTIVARIATE_LEAF, d)
    n_nodes = sizes.nodes(d)
    network.reserve(n_nodes, n_nodes, 0, n_stats + sizes.products * moments_length(d))
    weight, mixtures = total_weight(network.pools, network.root), []
    if sizes.gaussians > 0:
        n = enough_components(Z.shape[1], d, sizes.gaussians)
        mixtures.append(add_gaussians(network, fit_gaussians(Z, n, rng), variance_floor))
        add_edge(network.pools, network.root, mixtures[-1], weight)
    if sizes.products > 0:
        n = min(sizes.products, max(Z.shape[1] // RECORDS_PER_PRODUCT, 1))
        mixtures.append(add_products(network, Z, n, sizes.leaves, rng))
        add_edge(network.pools, network.root, mixtures[-1], weight)
        fit_products(network.pools, Z, mixtures[-1], SWEEPS, variance_floor)
    network.nodes["count"][mixtures] = 1.0 + len(mixtures)


def fit_gaussians(Z: FloatArray, n: int, rng: np.random.Generator) -> GaussianMixture:
    """Fit ``n`` Gaussians to the columns of ``Z``."""
    Z = np.clip(Z, -FARTHEST, FARTHEST)
    return GaussianMixture.of_seeds(Z, n, rng, SHRINKAGE).fit(Z)


def add_gaussians(network: Network, mixture: GaussianMixture, variance_floor: float) -> int:
    """Add a sum of Gaussians over all variables; return it."""
    pools, d = network.pools, network.n_variables
    leaves, pairs = [], np.tri(d, k=-1)
    covariances = mixture.covariances(mixture.gaussians.mean)
    for n, mean, covariance in zip(mixture.count, mixture.gaussians.mean, covariances, strict=True):
        leaf = new_node(pools, MULTIVARIATE_LEAF, 0, d, network.root)
        start = take_statistics(pools, statistics_length(MULTIVARIATE_LEAF, d))
        network.nodes[leaf]["stats"], network.nodes[leaf]["count"] = start, n
        moments = mean, np.full(d, n + SHRINKAGE), np.tril(covariance).T + (n + SHRINKAGE) * pairs
        network.stats[start : start + moments_length(d)] = np.concatenate(moments, axis=None)
        refresh_multivariate(leaf, network.nodes, network.stats, variance_floor)
        leaves.append(leaf)
    return add_sum(network, 0, d, leaves, mixture.count + 1.0)


def add_products(
    network: Network, Z: FloatArray, n: int, most_leaves: int, rng: np.random.Generator
) -> int:
    """Add a sum of ``n`` products around columns of ``Z`` (d, m), still to be fitted; return it."""
    pools, nodes, d = network.pools, network.nodes, network.n_variables
    seeds = Z[:, rng.choice(Z.shape[1], n, replace=n > Z.shape[1])]
    leaves = [Leaves.of_values(z, most_leaves) for z in Z]
    weights = [own.weights(z) for own, z in zip(leaves, seeds, strict=True)]
    products = []
    for k in range(n):
        sums = []
        for v, (own, weight) in enumerate(zip(leaves, weights, strict=True)):
            added = [new_node(pools, LEAF, v, 1, NIL) for _ in own.mean]
            nodes["mean"][added], nodes["variance"][added] = own.mean, own.variance
            sums.append(add_sum(network, v, 1, added, weight[k]))
        product = new_node(pools, PRODUCT, 0, d, network.root)
        nodes[product]["stats"] = take_statistics(pools, moments_length(d))
        for factor in sums:
            add_edge(pools, product, factor, 1.0)
        products.append(product)
    return add_sum(network, 0, d, products, np.ones(n))


def add_sum(
    network: Network, scope: int, n_scope: int, children: list[int], weights: FloatArray
) -> int:
    """Add a sum with these children."""
    found = new_node(network.pools, SUM, scope, n_scope, network.root)
    for child, weight in zip(children, weights, strict=True):
        add_edge(network.pools, found, child, weight)
    return int(found)
