"""New components in place of the lightest ones, where records come that nothing explains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .gaussians import GaussianMixture
from .network import StackedNetwork
from .products import SharedProducts

FloatArray = NDArray[np.float64]

RECENT = 1024
"""Log-densities by which a record is told to be badly explained."""

FEWEST = 256
"""Log-densities without which none is."""

POOL = 128
"""Badly explained records that are kept."""

GAIN = 1.0
"""Nats that a new component must win on the next batch to stay."""

LOWEST = -1e4
"""Nats that a record counts at the least in that comparison."""


class Replacement:
    """Proposes components fitted to badly explained records, and judges them by the next batch.

    Attributes
    ----------
    recent
        Latest log-densities, at most ``RECENT``.
    pool
        Badly explained records (d, n), oldest first.
    proposed
        Whether ``centre`` (d, n) holds records of components to be judged at the next boundary.
    """

    def __init__(self, d: int) -> None:
        self.recent, self.pool, self.centre = np.empty(0), np.empty((d, 0)), np.empty((d, 0))

    def judge(self, network: StackedNetwork, Z: FloatArray, clipped: FloatArray) -> bool:
        """Take each proposed component where it explains the new columns better; say if any."""
        if self.centre.shape[1] == 0:
            return False
        chosen, self.centre = self.centre, np.empty((len(Z), 0))
        changed = _try_product(network.products, chosen, Z)
        if network.mixture is not None:
            changed |= _try_gaussian(network.mixture, chosen, clipped)
        if changed:
            self.pool = self.pool[:, :0]
        return changed

    def collect(self, Z: FloatArray, log_density: FloatArray, clip: float) -> None:
        """Note how likely the new columns (d, m) were, and propose components for bad ones."""
        before, d = self.recent, len(Z)
        self.recent = np.concatenate([before, log_density])[-RECENT:]
        if len(before) < FEWEST:
            return
        middle = [len(before) // 4, len(before) // 2]
        lower, median = np.partition(before, middle)[middle]
        bad = log_density < median - 6.0 * (median - lower) - 1.0
        if not bad.any():
            return
        self.pool = _columns(np.concatenate([self.pool, Z[:, bad]], axis=1), slice(-POOL, None))
        if self.pool.shape[1] >= max(16, d // 2) and np.count_nonzero(bad) >= 4:
            self.centre = _columns(self.pool, _densest_half(np.clip(self.pool, -clip, clip)))


def _columns(Z: FloatArray, which: slice | NDArray[np.int64]) -> FloatArray:
    """Return some columns, in the order of memory that a restored state has: sums depend on it."""
    return np.ascontiguousarray(Z[:, which])


def _densest_half(Z: FloatArray) -> NDArray[np.int64]:
    """Columns nearest to the one whose median distance to the others is the smallest."""
    n = Z.shape[1]
    distance = np.nansum((Z[:, :, None] - Z[:, None, :]) ** 2, axis=0)
    centre = np.quantile(distance, 0.5, axis=1).argmin()
    return np.argsort(distance[centre], kind="stable")[: (n + 1) // 2]


def _try_product(products: SharedProducts, chosen: FloatArray, Z: FloatArray) -> bool:
    k = int(products.count.argmin())
    before = products.count.copy(), products.leaf_count.copy()
    old = products.log_densities(Z)[0][1]
    products.count[k] = chosen.shape[1]
    products.leaf_count[:, k] = products.marginals(chosen)[1].sum(axis=0)
    products.update()
    if _is_better(products.log_densities(Z)[0][1], old):
        return True
    products.count, products.leaf_count = before
    products.update()
    return False


def _try_gaussian(mixture: GaussianMixture, chosen: FloatArray, Z: FloatArray) -> bool:
    k = int(mixture.count.argmin())
    before = mixture.count.copy(), mixture.sums.copy(), mixture.squares.copy()
    old = mixture.log_density(Z)[0]
    mixture.set_component(k, chosen)
    if _is_better(mixture.log_density(Z)[0], old):
        return True
    mixture.count, mixture.sums, mixture.squares = before
    mixture.update()
    return False


def _is_better(new: FloatArray, old: FloatArray) -> bool:
    gain = np.maximum(new, LOWEST).sum() - np.maximum(old, LOWEST).sum()
    return bool(gain >= GAIN)
