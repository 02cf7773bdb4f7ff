"""The network: a root sum over densities of all variables, its children or experts.

They are, in this order: the product of the variables' marginals; a sum of products over the same
leaves; a mixture of full-covariance Gaussians; one Gaussian over the whole stream at
four widths. Those of more than 128 variables have no mixture, whose
costs grow with their square.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture
from faust_oslrau.learner.density.mixtures import log_sums
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    aligned_stack,
    fma,
    load,
    padded,
    spread,
    store,
)

from .background import N_BACKGROUND, Background
from .product_kernels import SMALLEST
from .products import SharedProducts

MEMORY = 512
"""Records that the weights are fitted to."""

STEPS = 10
"""Steps of EM at each boundary."""

PRIOR = 0.3
"""Records' worth added to each expert."""


def fit_weights(weight: FloatArray, history: FloatArray) -> FloatArray:
    """Improve the weights (E,) for the log-densities ``history`` (n, E) by some steps of EM."""
    n, E = history.shape
    density = np.zeros((E, padded(max(n, 2))))
    logs = np.ascontiguousarray(history.T)
    density[:, :n] = np.exp(logs - logs.max(axis=0))
    weight = weight.copy()
    improve(weight, density)
    return weight


@kernel
def improve(weight: Array, density: Array) -> None:
    """Take steps of EM for the weights (E,) of densities (E, n); columns of zeros do not count."""
    aligned_stack()
    count, sums = np.empty(len(weight)), np.empty((len(weight), WIDTH))
    for _ in range(STEPS):
        sums[:] = 0.0
        for i in range(0, density.shape[1], WIDTH):
            total = spread(SMALLEST)
            for e in range(len(weight)):
                total = fma(weight[e], load(density, e, i), total)
            share = spread(1.0) / total
            for e in range(len(weight)):
                store(sums, e, 0, fma(load(density, e, i), share, load(sums, e, 0)))
        for e in range(len(weight)):
            count[e] = PRIOR + weight[e] * sums[e].sum()
        weight[:] = count / count.sum()


BLOCK = 4096
"""Columns evaluated at a time where nothing but their log-densities is wanted."""

LOWEST = -1e300
"""Of a log-density: finite, so that differences are numbers."""


class Evaluated(NamedTuple):
    """What the network says of columns (d, m).

    Attributes
    ----------
    log_density
        Of the root (m,), in the network's units.
    experts
        Log-densities of the root's children (m, E).
    shares
        Those of the children in the root (m, E), given each column.
    products, gaussians
        Shares of the products (m, K) and of the mixture's Gaussians (m, K) in their sums.
    """

    log_density: FloatArray
    experts: FloatArray
    shares: FloatArray
    products: FloatArray
    gaussians: FloatArray


class StackedNetwork:
    """Experts of the same variables under one root; ``weight`` (E,) are theirs."""

    def __init__(
        self,
        products: SharedProducts,
        mixture: GaussianMixture | None,
        background: Background,
        weight: FloatArray,
    ) -> None:
        self.products = products
        self.mixture = mixture
        self.background = background
        self.weight = weight

    @property
    def background_weights(self) -> FloatArray:
        """Weights (widths,) of the Gaussians of the background."""
        return self.weight[self.own_background]

    @property
    def own_background(self) -> slice:
        """Where the Gaussians of the background are among the experts."""
        first = 2 if self.mixture is None else 3
        return slice(first, first + N_BACKGROUND)

    @property
    def n_variables(self) -> int:
        """Number d of variables."""
        return len(self.products.leaves.first) - 1

    def evaluate(self, Z: FloatArray, floor: FloatArray | float = 0.0) -> Evaluated:
        """Evaluate the columns of ``Z`` (d, m), missing values (NaN) marginalised.

        ``floor`` is the least variance of the leaves, a number or one for each variable (d,).
        """
        own, products = self.products.log_densities(Z, floor)
        parts, gaussians = [own], np.empty((Z.shape[1], 0))
        if self.mixture is not None:
            mixed, gaussians = self.mixture.log_density(Z, floor)
            parts.append(mixed[None])
        parts.append(self.background.log_densities(Z, floor))
        experts = np.ascontiguousarray(np.maximum(np.concatenate(parts), LOWEST).T)
        shares = experts + np.log(self.weight)
        return Evaluated(log_sums(shares), experts, shares, products, gaussians)

    def log_density(self, Z: FloatArray, floor: FloatArray | float = 0.0) -> FloatArray:
        """Log-density (m,) of the columns of ``Z`` alone, in the room that some of them take."""
        starts = range(0, max(Z.shape[1], 1), BLOCK)
        blocks = (np.ascontiguousarray(Z[:, start : start + BLOCK]) for start in starts)
        return np.concatenate([self.evaluate(block, floor).log_density for block in blocks])

    @property
    def kind_counts(self) -> dict[str, int]:
        """Number of nodes of each kind, shared ones counted once."""
        d, K = self.n_variables, len(self.products.weight)
        counts = {
            "sum": 2 + (K + 1) * d,
            "product": K + 1,
            "leaf": len(self.products.leaves.mean),
            "multivariate_leaf": N_BACKGROUND,
        }
        if self.mixture is not None:
            counts["sum"] += 1
            counts["multivariate_leaf"] += len(self.mixture.weight)
        return counts

    @property
    def n_edges(self) -> int:
        """Number of edges; a leaf has one from each sum of its variable."""
        d, K = self.n_variables, len(self.products.weight)
        edges = len(self.weight) + K + (K + 1) * d + (K + 1) * len(self.products.leaves.mean)
        return edges + (0 if self.mixture is None else len(self.mixture.weight))

    @property
    def n_parameters(self) -> int:
        """Free parameters: weights less one a sum, means, and variances or covariances.

        Those of the background are counted once, as all of its Gaussians come of the same ones.
        """
        d, K = self.n_variables, len(self.products.weight)
        n_leaves = len(self.products.leaves.mean)
        total = len(self.weight) - 1 + K - 1 + (K + 1) * (n_leaves - d) + 2 * n_leaves
        sizes = [len(squares) for squares in self.background.known.squares]
        total += d + sum(size * (size + 1) // 2 for size in sizes)
        if self.mixture is not None:
            total += len(self.mixture.weight) * (d + d * (d + 1) // 2 + 1) - 1
        return total
