"""The same network in terms of another location and scale, as when networks are merged.

Gaussian leaves stay Gaussian under z' = a z + b, and so do their statistics: nothing that was
learned is lost but what is finer than the least variance in the new units.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.gaussian_kernels import LEAST_VARIANCE
from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture
from faust_oslrau.learner.queries.scaling import Scaling

from .background import Background
from .products import SharedProducts
from .training import Training, single

FARTHEST = 1e30
"""Deviations that old values are moved by at the most, so that their sums of squares are finite."""


def move_to(training: Training, new: Scaling) -> None:
    """Move to other units, if they are others."""
    network, old = training.network, training.scaling
    if network is None or new is old:
        return
    a, b = old.scale / new.scale, (old.location - new.location) / new.scale
    a, b = np.nan_to_num(a, nan=1.0), np.clip(np.nan_to_num(b), -FARTHEST, FARTHEST)
    _move_products(network.products, a, b)
    if network.mixture is not None:
        _move_mixture(network.mixture, a, b)
    _move_background(network.background, a, b)
    training.scaling = new
    training.window = single(_moved(training.window.astype(np.float64), a, b))


def _moved(Z: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Return columns (d, n) in the new units."""
    return Z * a[:, None] + b[:, None]


def _move_products(products: SharedProducts, a: FloatArray, b: FloatArray) -> None:
    leaves = products.leaves
    a, b = a[leaves.variable], b[leaves.variable]
    n, first, second = products.moments
    moved, squares = a * first + b * n, a**2 * second + 2.0 * a * b * first + b**2 * n
    # rounding must not leave less than values that are all the same have
    least = np.divide(moved**2, n, out=np.zeros(len(n)), where=n > 0.0)
    products.moments = np.stack([n, moved, np.maximum(squares, least)])
    factor = np.where(leaves.is_wide, 1.0, a**2)  # wide leaves stay wide in the new units
    products.leaves = replace(
        leaves,
        mean=a * leaves.mean + b,
        variance=np.maximum(factor * leaves.variance, LEAST_VARIANCE),
        prior_mean=a * leaves.prior_mean + b,
        prior_variance=np.maximum(factor * leaves.prior_variance, LEAST_VARIANCE),
    )
    products.update()


def _move_mixture(mixture: GaussianMixture, a: FloatArray, b: FloatArray) -> None:
    for k, count in enumerate(mixture.count.tolist()):
        mixture.sums[k], mixture.squares[k] = _moved_sums(
            count, mixture.sums[k], mixture.squares[k], a, b
        )
    mixture.gaussians.mean = a * mixture.gaussians.mean + b
    mixture.update()


def _move_background(background: Background, a: FloatArray, b: FloatArray) -> None:
    for moments in (background.known, background.fresh):
        sums = moments.sums.copy()
        for i, own in enumerate(background.blocks):
            moments.sums[own], moments.squares[i] = _moved_sums(
                moments.count, sums[own], moments.squares[i], a[own], b[own]
            )
    background.update()


def _moved_sums(
    count: float, sums: FloatArray, squares: FloatArray, a: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return sums (d,) and the lower triangle of sums of products (d, d) in the new units."""
    cross = np.outer(a * sums, b)
    moved = squares * np.outer(a, a) + np.tril(cross + cross.T + count * np.outer(b, b))
    return a * sums + count * b, moved
