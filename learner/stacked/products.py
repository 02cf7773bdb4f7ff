"""A sum of products over leaves that they share, and the product of the leaves' marginals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.gaussian_kernels import LEAST_VARIANCE

from . import product_kernels as kernels
from . import product_statistics as statistics
from .leaves import WIDE, Leaves

SHRINKAGE = 3.0
"""Records' worth by which each product's weights are drawn to the marginal ones."""

WEIGHT_PRIOR = 0.5
"""Records' worth added to each product."""


class SharedProducts:
    """Products over shared leaves; column 0 of the weights is the marginal of each variable.

    Attributes
    ----------
    leaves
        The shared leaves (n of them).
    W
        Weights (n, K + 1) of the leaves in each variable's sum; columns add up to 1 by variable.
    weight
        Weights of the products (K,).
    count, leaf_count, moments
        Statistics: records of each product (K,), of each product by leaf (n, K), and sums of 1, z
        and z squared by leaf (3, n).
    """

    def __init__(self, leaves: Leaves, n_products: int) -> None:
        self.leaves = leaves
        self.W = np.repeat(leaves.prior_weight[:, None], n_products + 1, axis=1)
        self.weight = np.full(n_products, 1.0 / n_products)
        self.clear()

    def clear(self) -> None:
        """Forget all statistics."""
        n, K = len(self.leaves.mean), len(self.weight)
        self.count, self.leaf_count, self.moments = np.zeros(K), np.zeros((n, K)), np.zeros((3, n))

    def seed(self, Z: FloatArray, rng: np.random.Generator) -> None:
        """Begin each product at a record of ``Z`` (d, m): half its leaves, half the marginals."""
        K = len(self.weight)
        if K > 1:
            rows = rng.choice(Z.shape[1], K, replace=Z.shape[1] < K)
            shares = self.marginals(Z[:, rows])[1].T
            observed = self.leaves.sums(shares) > 0
            marginal = self.W[:, :1]
            self.W[:, 1:] = np.where(observed, 0.5 * shares + 0.5 * marginal, marginal)

    def log_densities(
        self, Z: FloatArray, floor: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the log-densities (2, m), independent and of the sum, and the shares (m, K).

        ``floor`` is the least variance of the leaves, a number or one for each variable (d,).
        """
        result, shares = np.empty((2, Z.shape[1])), np.empty((Z.shape[1], len(self.weight)))
        leaves = self.leaves
        kernels.log_densities(
            Z, leaves.first, leaves.coefficients(floor), self.W, np.log(self.weight), result, shares
        )
        return result, shares

    def marginals(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log-densities (d, m) of single values, and the leaves' shares (m, n) in them.

        Where all variables are independent; 0 where a value is missing.
        """
        log_density, shares = np.empty(Z.shape), np.empty((Z.shape[1], len(self.W)))
        leaves, Z = self.leaves, np.ascontiguousarray(Z)
        kernels.marginals(Z, leaves.first, leaves.own_coefficients, self.W, log_density, shares)
        return log_density, shares

    def given_others(self, Z: FloatArray) -> FloatArray:
        """Log-densities (K + 1, d, m) of the other variables of each one, in each product."""
        result, leaves = np.empty((len(self.weight) + 1, *Z.shape)), self.leaves
        Z = np.ascontiguousarray(Z)
        kernels.given_others(Z, leaves.first, leaves.coefficients(0.0), self.W, result)
        return result

    def conditional_moments(self) -> FloatArray:
        """Means and variances (2, d, K + 1) of each variable in each product.

        Wide leaves do not count, unless a variable has no others.
        """
        leaves = self.leaves
        narrow = np.where(leaves.is_wide[:, None], 0.0, self.W)
        total = leaves.sums(narrow)
        share = np.divide(narrow, total, out=self.W.copy(), where=total > 0)
        mean = np.add.reduceat(share * leaves.mean[:, None], leaves.first[:-1])
        shift = leaves.mean[:, None] - mean[leaves.variable]
        spread = share * (leaves.variance[:, None] + shift**2)
        return np.stack([mean, np.add.reduceat(spread, leaves.first[:-1])])

    def learn(self, Z: FloatArray, shares: FloatArray, kept: float) -> None:
        """Add the statistics of the columns of ``Z``; the earlier ones count ``kept`` times."""
        if kept < 1.0:
            self.count *= kept
            self.leaf_count *= kept
            self.moments *= kept
        self.count += shares.sum(axis=0)
        statistics.add_statistics(
            Z, shares, self.leaves.first, self.leaves.own_coefficients, self.W,
            self.leaf_count, self.moments,
        )  # fmt: skip
        self.update()

    def update(self) -> None:
        """Set the parameters that the statistics give."""
        leaves, K = self.leaves, len(self.weight)
        self.weight = (self.count + WEIGHT_PRIOR) / (self.count.sum() + WEIGHT_PRIOR * K)
        by_leaf = self.leaf_count.sum(axis=1)
        statistics.set_weights(
            self.leaf_count, by_leaf, leaves.first, leaves.prior_weight, SHRINKAGE, self.W
        )
        own = np.ones(len(leaves.mean), np.bool_)  # but the wide ones, which stay
        own[np.add.outer(leaves.first[:-1], np.arange(len(WIDE)))] = False
        mean, variance = leaves.mean.copy(), leaves.variance.copy()
        n, total, squares = self.moments[:, own]
        mean[own] = centre = (total + leaves.prior_mean[own]) / (n + 1.0)
        around = np.maximum(squares - 2.0 * centre * total + n * centre * centre, 0.0)
        around += leaves.prior_variance[own] + (centre - leaves.prior_mean[own]) ** 2
        variance[own] = np.maximum(around / (n + 1.0), LEAST_VARIANCE)
        self.leaves = replace(leaves, mean=mean, variance=variance)
