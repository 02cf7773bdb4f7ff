"""Fewer shared leaves: neighbours are merged where the density changes least."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .leaves import LEAST_VARIANCE, WIDE, Leaves
from .products import SharedProducts

FloatArray = NDArray[np.float64]


def merge_leaves(products: SharedProducts, n_leaves: int) -> None:
    """Merge leaves until at most ``n_leaves`` are left besides the wide ones.

    Each variable keeps at least one. Two neighbours become one with their common moments; first
    those that lose the least likelihood by it (Runnalls 2007, "Kullback-Leibler approach to
    Gaussian mixture reduction", equation 16).
    """
    groups = _Groups(products)
    excess = len(groups.members) - n_leaves
    for _ in range(excess):
        if not groups.merge_cheapest():
            break
    _apply(products, groups)


class _Groups:
    """Groups of leaves that become one leaf: their variable, count, mean and variance."""

    def __init__(self, products: SharedProducts) -> None:
        leaves = products.leaves
        narrow = np.flatnonzero(~leaves.is_wide)
        narrow = narrow[np.lexsort((leaves.mean[narrow], leaves.variable[narrow]))]
        self.members = [[int(j)] for j in narrow]
        self.variable = leaves.variable[narrow]
        self.count = products.moments[0, narrow] + 1.0
        self.mean, self.variance = leaves.mean[narrow], leaves.variance[narrow]

    def merge_cheapest(self) -> bool:
        """Merge the pair of neighbours that loses least; say if there is one."""
        if len(self.members) < 2:
            return False
        count = self.count[:-1] + self.count[1:]
        mean, variance = self._joined(count)
        loss = 0.5 * count * np.log(variance)
        loss -= 0.5 * (self.count * np.log(self.variance))[:-1]
        loss -= 0.5 * (self.count * np.log(self.variance))[1:]
        loss[self.variable[:-1] != self.variable[1:]] = np.inf
        i = int(loss.argmin())
        if np.isinf(loss[i]):
            return False
        self.count[i], self.mean[i], self.variance[i] = count[i], mean[i], variance[i]
        self.members[i] += self.members.pop(i + 1)
        self.variable, self.count, self.mean, self.variance = (
            np.delete(column, i + 1)
            for column in (self.variable, self.count, self.mean, self.variance)
        )
        return True

    def _joined(self, count: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances of all pairs of neighbours."""
        share = self.count[1:] / count
        step = np.diff(self.mean)
        mean = self.mean[:-1] + share * step
        within = (1.0 - share) * self.variance[:-1] + share * self.variance[1:]
        return mean, within + share * (1.0 - share) * step**2


def _apply(products: SharedProducts, groups: _Groups) -> None:
    """Add up the statistics of each group, and combine what its leaves began with."""
    leaves, members = products.leaves, []
    for v, start in enumerate(leaves.first[:-1].tolist()):
        members += [[start + j] for j in range(len(WIDE))]
        members += [g for g, u in zip(groups.members, groups.variable, strict=True) if u == v]
    table = np.zeros((len(members), len(leaves.mean)))
    for i, group in enumerate(members):
        table[i, group] = 1.0
    weight = table @ leaves.prior_weight
    mean = table @ (leaves.prior_weight * leaves.prior_mean) / weight
    second = leaves.prior_variance + leaves.prior_mean**2
    variance = table @ (leaves.prior_weight * second) / weight - mean**2
    alone = table.sum(axis=1) == 1
    only = table.argmax(axis=1)
    mean = np.where(alone, leaves.prior_mean[only], mean)
    variance = np.where(alone, leaves.prior_variance[only], variance)
    variance = np.maximum(variance, LEAST_VARIANCE)  # differences of squares round
    variable = leaves.variable[only]
    first = np.searchsorted(variable, np.arange(len(leaves.first))).astype(np.int64)
    products.leaf_count = table @ products.leaf_count
    products.moments = np.ascontiguousarray(products.moments @ table.T)
    products.W = np.repeat(weight[:, None], products.W.shape[1], axis=1)
    own_mean, own_variance = leaves.mean[only], leaves.variance[only]
    products.leaves = Leaves(first, own_mean, own_variance, mean, variance, weight)
    products.update()
