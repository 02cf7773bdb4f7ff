"""Fewer products over shared leaves: two become one where the density changes least."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .products import SharedProducts

FloatArray = NDArray[np.float64]


def merge_products(products: SharedProducts, n_products: int) -> None:
    """Merge products until at most ``n_products`` are left; no count is lost.

    Two become one with their common counts; first those whose records lose the least likelihood
    by it, with each record learned by one product.
    """
    groups = _Groups(products)
    for _ in range(len(products.weight) - n_products):
        groups.merge_cheapest()
    products.count, products.leaf_count = groups.count, np.ascontiguousarray(groups.leaf_count)
    products.W = np.ascontiguousarray(products.W[:, : len(groups.count) + 1])
    products.weight = products.weight[: len(groups.count)].copy()
    products.update()


class _Groups:
    """Groups of products that become one: their counts, and what merging each pair would lose."""

    def __init__(self, products: SharedProducts) -> None:
        self.count, self.leaf_count = products.count.copy(), products.leaf_count.copy()
        self.first = products.leaves.first[:-1]
        self.likelihood = self._log_likelihoods(self.leaf_count)
        self.loss = np.full((len(self.count),) * 2, np.inf)
        for k in range(len(self.count)):
            self._compare(k)

    def merge_cheapest(self) -> None:
        """Merge the pair that loses least."""
        kept, gone = np.unravel_index(self.loss.argmin(), self.loss.shape)
        self.count[kept] += self.count[gone]
        self.leaf_count[:, kept] += self.leaf_count[:, gone]
        self.likelihood[kept] = self._log_likelihoods(self.leaf_count[:, [kept]])[0]
        self._compare(int(kept))
        self.count, self.likelihood = np.delete(self.count, gone), np.delete(self.likelihood, gone)
        self.leaf_count = np.delete(self.leaf_count, gone, axis=1)
        self.loss = np.delete(np.delete(self.loss, gone, axis=0), gone, axis=1)

    def _compare(self, k: int) -> None:
        """Set what merging group ``k`` with each other one would lose, in nats."""
        merged = self._log_likelihoods(self.leaf_count + self.leaf_count[:, [k]])
        self.loss[k] = self.loss[:, k] = self.likelihood + self.likelihood[k] - merged
        self.loss[k, k] = np.inf

    def _log_likelihoods(self, leaf_count: FloatArray) -> FloatArray:
        """Log-likelihood (K,) of counts (n, K) under weights that are proportional to them."""
        totals = np.add.reduceat(leaf_count, self.first)
        by_leaf: FloatArray = _times_logarithm(leaf_count).sum(axis=0)
        by_variable: FloatArray = _times_logarithm(totals).sum(axis=0)
        return by_leaf - by_variable


def _times_logarithm(x: FloatArray) -> FloatArray:
    """Return x log x, which is 0 where x is."""
    result: FloatArray = x * np.log(np.maximum(x, np.finfo(np.float64).tiny))
    return result
