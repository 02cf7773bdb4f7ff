"""Units that move with the stream: the same network in terms of another location and scale.

Location and scale are those of the first records. A field that was constant at first and begins to
move is then many deviations out, where values are clipped and only wide leaves are. So its units
are taken from the new records. Gaussian leaves stay Gaussian under z' = a z + b, and so do their
statistics: nothing that was learned is lost but what is finer than the least variance in the new
units.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.queries.scaling import Scaling, location_and_scale

from .background import Background
from .gaussians import GaussianMixture
from .leaves import LEAST_VARIANCE
from .products import SharedProducts
from .training import CLIP, Training, single

FloatArray = NDArray[np.float64]

FAR = 15.0
"""Deviations beyond which most of a variable's new values must lie."""

FARTHEST = 1e30
"""Deviations that old values are moved by at the most, so that their sums of squares are finite."""

FEWEST = 16
"""New values of a variable that tell its units at the least."""


def move_units(training: Training, X: FloatArray) -> bool:
    """Move the units of variables whose new values in ``X`` (m, d) lie far out; say if any do."""
    if training.network is None or len(training.raw) > 0:  # the first records set the units
        return False
    new = _units(X, training.scaling)
    if new is None:
        return False
    move_to(training, new)
    training.renewing = training.sample.shape[1] > 0  # leaves where the new values are
    return True


def move_to(training: Training, new: Scaling) -> None:
    """Move to other units, if they are others; a tree is grown anew from the sample then."""
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
    training.sample = single(_moved(training.sample.astype(np.float64), a, b))
    _move_replacement(training, a, b)
    if network.tree is not None:
        kept = np.concatenate([training.sample, training.window], axis=1).astype(np.float64)
        network.tree = network.tree.regrown(np.clip(kept, -CLIP, CLIP))


def _units(X: FloatArray, old: Scaling) -> Scaling | None:
    """Return the units with those of far variables taken from ``X``; None where none is far."""
    Z, _ = old.apply(X)
    far = np.abs(Z) > FAR
    if not far.any():
        return None
    observed = np.count_nonzero(~np.isnan(Z), axis=1)
    is_far = (observed >= FEWEST) & (2 * np.count_nonzero(far, axis=1) > observed)
    if not is_far.any():
        return None
    new = Scaling.of(old.location.copy(), old.scale.copy())
    for v in np.flatnonzero(is_far).tolist():
        column = X[:, v]
        location, deviation = location_and_scale(column[~np.isnan(column)])
        new.location[v], new.scale[v] = location, max(deviation, float(old.scale[v]))
    return new


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
        moments.factor_products *= a[:, None]
        moments.factor_products += np.outer(b, moments.factor_sums)
    background.update()


def _moved_sums(
    count: float, sums: FloatArray, squares: FloatArray, a: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return sums (d,) and the lower triangle of sums of products (d, d) in the new units."""
    cross = np.outer(a * sums, b)
    moved = squares * np.outer(a, a) + np.tril(cross + cross.T + count * np.outer(b, b))
    return a * sums + count * b, moved


def _move_replacement(training: Training, a: FloatArray, b: FloatArray) -> None:
    replacement = training.replacement
    replacement.pool = _moved(replacement.pool, a, b)
    replacement.centre = _moved(replacement.centre, a, b)
    replacement.recent = replacement.recent - np.log(a).sum()
