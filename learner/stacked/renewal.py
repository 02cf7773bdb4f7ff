"""Fresh leaves from a uniform sample of the stream, where they explain new records better."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .leaves import MOST_LEAVES, Leaves
from .product_statistics import add_cross_products
from .products import SharedProducts
from .sizes import Sizes

FloatArray = NDArray[np.float64]

SAMPLE = 1024
"""Records of the sample at the most."""

SAMPLE_VALUES = 49_152
"""Values of the sample at the most, unless that is less than 64 records."""

PERIOD = 1008
"""Leaves are proposed when so many records were learned, twice, four times as many and so on, and
each time after ``LAST_PERIODS`` of them."""

LAST_PERIODS = 64

STEPS = 5
"""Steps of EM that fit fresh leaves to the sample."""

SMOOTHING = 1e-3
"""Of the table that says which new leaves an old one becomes."""


def sample_size(d: int) -> int:
    """Return how many records of ``d`` variables the sample takes."""
    return min(SAMPLE, max(64, SAMPLE_VALUES // d))


def add_to_sample(
    sample: NDArray[np.float32],
    Z: NDArray[np.float32],
    n_before: int,
    memory: float,
    rng: np.random.Generator,
) -> None:
    """Let the columns of ``Z`` (d, m) replace those of a uniform sample (d, n) by chance.

    With a ``memory`` the chance of later ones stays what it is after so many records.
    """
    n, m = sample.shape[1], Z.shape[1]
    records = np.minimum(np.arange(n_before + 1, n_before + m + 1), max(memory, n))
    places = rng.integers(records.astype(np.int64))
    chosen = np.flatnonzero(places < n)
    sample[:, places[chosen]] = Z[:, chosen]  # of several for one place, the last one stays


def is_due(n: int, m: int) -> bool:
    """Whether leaves are to be proposed after ``n`` records, the last ``m`` in one batch."""
    periods = n // PERIOD
    passed = periods != (n - m) // PERIOD
    return passed and (periods & (periods - 1) == 0 or periods % LAST_PERIODS == 0)


def propose(sample: FloatArray, sizes: Sizes) -> SharedProducts:
    """Fit fresh leaves to the sample (d, n), each variable alone."""
    leaves = Leaves.of_sample(sample.T, sizes.leaves, MOST_LEAVES, sizes.quantiles)
    fresh = SharedProducts(leaves, 1)
    for _ in range(STEPS):
        fresh.clear()
        fresh.learn(sample, np.ones((sample.shape[1], 1)), 0.0)
    return fresh


def adopt(
    products: SharedProducts, fresh: SharedProducts, Z: FloatArray, sample: FloatArray
) -> bool:
    """Take the fresh leaves of each variable where they explain ``Z`` (d, m) better; say if any.

    What a product has counted by old leaf goes to the new ones as the sample's records do.
    """
    better = fresh.marginals(Z)[0].mean(axis=1) > products.marginals(Z)[0].mean(axis=1)
    if not better.any():
        return False
    shares = products.marginals(sample)[1], fresh.marginals(sample)[1]
    scale = products.count.sum() / sample.shape[1]
    parts = [
        _renewed(products, fresh, v, shares, sample[v], scale) if better[v] else _kept(products, v)
        for v in range(len(better))
    ]
    first = np.cumsum([0, *(len(part[0]) for part in parts)])
    leaves, W, count, moments = (np.concatenate(each) for each in zip(*parts, strict=True))
    products.leaves = Leaves(first.astype(np.int64), *np.ascontiguousarray(leaves.T))
    products.W, products.leaf_count = W, count
    products.moments = np.ascontiguousarray(moments.T)
    products.update()
    return True


Part = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Leaves (n, 5), weights (n, K + 1), counts (n, K) and moments (n, 3) of a variable."""


def _parameters(leaves: Leaves, own: slice) -> FloatArray:
    columns = (
        leaves.mean, leaves.variance, leaves.prior_mean, leaves.prior_variance, leaves.prior_weight
    )  # fmt: skip
    return np.column_stack([column[own] for column in columns])


def _kept(products: SharedProducts, v: int) -> Part:
    own = slice(*products.leaves.first[v : v + 2])
    moments = products.moments[:, own].T
    return _parameters(products.leaves, own), products.W[own], products.leaf_count[own], moments


def _renewed(
    products: SharedProducts,
    fresh: SharedProducts,
    v: int,
    shares: tuple[FloatArray, FloatArray],
    z: FloatArray,
    scale: float,
) -> Part:
    old, new = (slice(*each.leaves.first[v : v + 2]) for each in (products, fresh))
    before, after = (
        np.ascontiguousarray(share[:, own]) for share, own in zip(shares, (old, new), strict=True)
    )
    weight = fresh.W[new, 0]
    table = np.tile(SMOOTHING * weight, (before.shape[1], 1))
    add_cross_products(before, after, table)
    table /= table.sum(axis=1, keepdims=True)
    leaf_count = np.zeros((len(weight), products.leaf_count.shape[1]))
    add_cross_products(table, products.leaf_count[old], leaf_count)
    z = np.nan_to_num(z)[:, None]
    moments = scale * np.column_stack([(after * z**power).sum(axis=0) for power in (0, 1, 2)])
    W = np.repeat(weight[:, None], products.W.shape[1], axis=1)
    return _parameters(fresh.leaves, new), W, leaf_count, moments
