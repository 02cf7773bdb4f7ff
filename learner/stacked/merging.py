"""The mixture of several models as one network, with the parts of each kind together.

Products and Gaussians of all models are children of the same sums, each with what it weighed in its
model times the share of that model in all records. The independent fields of a model become one
product more, and its Gaussian over the whole stream one Gaussian more. So the density is that of
the mixture, but for what is finer than the least variance in common units. Networks of more than
128 variables have no mixture of Gaussians: their Gaussians over the whole stream become one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.density.gaussian_kernels import LEAST_VARIANCE
from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture, shrinkages
from faust_oslrau.learner.errors import InvalidInputError
from faust_oslrau.learner.queries.scaling import Scaling

from .background import Background
from .contest import Contest
from .leaves import WIDE, Leaves
from .network import MEMORY, PRIOR, StackedNetwork
from .products import SharedProducts
from .training import SCALE_RECORDS, Training, single


class Part(NamedTuple):
    """A network of a model, and its share of all records."""

    share: float
    training: Training
    network: StackedNetwork

    @property
    def of_background(self) -> FloatArray:
        """Weights of the Gaussian over the whole stream in the root, by its widths."""
        return self.network.background_weights


def merge_contests(contests: Sequence[Contest]) -> Contest:
    """Return the mixture of models in training, each weighted by its records, to learn on.

    It is in units of the network with the most records. The models' networks are taken apart.
    InvalidInputError for other numbers of fields, or a field that was never observed in a model.
    """
    total = sum(contest.n_records for contest in contests)
    parts = [part for contest in contests for part in _parts(contest, total)]
    widths = {part.network.n_variables for part in parts}
    if len(widths) > 1:
        raise InvalidInputError("models: expected as many fields in each")
    if not all(part.training.scaling.is_complete for part in parts):
        raise InvalidInputError("models: expected each field to have been observed in each")
    merged = Contest(*widths)
    merged.n_records, merged.incumbent = total, _merge(parts, total)
    return merged


def _parts(contest: Contest, total: int) -> list[Part]:
    """Return the networks of a model, those of an incumbent and a challenger apart."""
    trainings = [contest.incumbent] + ([contest.challenger] if contest.challenger else [])
    shares = [contest.share, 1.0 - contest.share]
    return [
        Part(contest.n_records / total * share, training, training.network)
        for share, training in zip(shares, trainings, strict=False)
        if training.network is not None
    ]


def _merge(parts: list[Part], total: int) -> Training:
    first = max(parts, key=lambda part: part.share)
    for part in parts:
        move_to(part.training, first.training.scaling)
    d = first.network.n_variables
    merged = Training(d)
    merged.scaling, merged.n_records, merged.built = first.training.scaling, total, total
    merged.network = _merge_networks(parts, first)
    merged.history = np.empty((0, len(merged.network.weight)))
    window = np.concatenate([part.training.window for part in parts], axis=1)
    if window.shape[1] == total:  # all records of all models: the warm-up goes on
        merged.window = window
        raw = np.concatenate([part.training.raw for part in parts])
        merged.raw = raw if total < SCALE_RECORDS else raw[:0]
    return merged


def _merge_networks(parts: list[Part], first: Part) -> StackedNetwork:
    mixture = None if first.network.mixture is None else _merge_mixtures(parts)
    background = _merge_backgrounds(parts)
    return StackedNetwork(_merge_products(parts, first), mixture, background, _weights(parts))


def _weights(parts: list[Part]) -> FloatArray:
    """Return the root's weights.

    What independent fields and the Gaussian over a stream weighed goes to the product and to the
    Gaussian that they have become.
    """
    has_mixture = parts[0].network.mixture is not None
    weight = np.zeros(2 + has_mixture + len(parts[0].of_background))
    for share, _, network in parts:
        weight += share * network.weight
    weight[1], weight[0] = weight[:2].sum(), 0.0
    if has_mixture:
        weight[2], weight[3] = weight[2] + weight[3], 0.0
    weight += PRIOR / MEMORY  # as for experts that no record needs
    result: FloatArray = weight / weight.sum()
    return result


def _merge_products(parts: list[Part], first: Part) -> SharedProducts:
    """Return all products, over the leaves of all networks; each network has one product more.

    The wide leaves are those of the ``first`` network.
    """
    each = [part.network.products for part in parts]
    merged = SharedProducts(_join_leaves(parts, first), sum(len(p.weight) + 1 for p in each))
    total, weights = sum(p.count.sum() for p in each), [part.network.weight[:2] for part in parts]
    scale = total / sum(part.share * w.sum() for part, w in zip(parts, weights, strict=True))
    start = 0
    for i, (part, own) in enumerate(zip(parts, each, strict=True)):
        rows, known = _rows(each, i), own.count.sum()
        independent, dependent = scale * part.share / known * weights[i]
        end = start + 1 + len(own.weight)
        by_leaf = own.leaf_count.sum(axis=1, keepdims=True)
        merged.count[start:end] = np.append(independent * known, dependent * own.count)
        merged.leaf_count[rows, start:end] = np.hstack(
            [independent * by_leaf, dependent * own.leaf_count]
        )
        start = end
        merged.moments[:, rows] += own.moments
    merged.update()
    return merged


def _rows(each: Sequence[SharedProducts], i: int) -> IntArray:
    """Return where the leaves of network ``i`` are among those of all networks."""
    firsts = [products.leaves.first for products in each]
    narrow = np.array([np.diff(first) - len(WIDE) for first in firsts])  # (networks, d)
    starts = np.concatenate([[0], np.cumsum(len(WIDE) + narrow.sum(axis=0))[:-1]])
    before = starts + narrow[:i].sum(axis=0)
    rows = [
        np.r_[start : start + len(WIDE), own + len(WIDE) : own + len(WIDE) + n]
        for start, own, n in zip(starts, before, narrow[i], strict=True)
    ]
    return np.concatenate(rows).astype(np.int64)


def _join_leaves(parts: list[Part], first: Part) -> Leaves:
    each = [part.network.products for part in parts]
    rows = [_rows(each, i) for i in range(len(parts))]
    values = np.zeros((3, 1 + max(own.max() for own in rows)))
    for part, own in zip([*parts, first], [*rows, rows[parts.index(first)]], strict=True):
        leaves = part.network.products.leaves
        values[:2, own] = leaves.prior_mean, leaves.prior_variance
    for part, own in zip(parts, rows, strict=True):
        values[2, own] += part.share * part.network.products.leaves.prior_weight
    sizes = np.sum([np.diff(p.leaves.first) - len(WIDE) for p in each], axis=0) + len(WIDE)
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    mean, variance, weight = values
    return Leaves(bounds, mean.copy(), variance.copy(), mean, variance, weight)


def _merge_backgrounds(parts: list[Part]) -> Background:
    """Return the Gaussian of all records."""
    merged = Background(parts[0].network.n_variables)
    for part in parts:
        merged.known.merge(part.network.background.all_moments())
    merged.update()
    return merged


def _merge_mixtures(parts: list[Part]) -> GaussianMixture:
    """Return all Gaussians, and one more for each network: that over its whole stream."""
    clusters = [part for part in map(_clusters, parts) if part is not None]
    whole = [_whole_stream(part) for part in parts]
    weights = [(p.network.weight[2], p.of_background[0]) for p in parts]
    total = sum(each.records.sum() for each in clusters)
    total /= sum(part.share * sum(own) for part, own in zip(parts, weights, strict=True))
    each = [one for pair in zip(clusters, whole, strict=True) for one in pair]
    shares = [part.share * own for part, pair in zip(parts, weights, strict=True) for own in pair]
    count = [
        total * share / one.records.sum() * one.records
        for share, one in zip(shares, each, strict=True)
    ]
    merged = GaussianMixture(sum(map(len, count)), parts[0].network.n_variables)
    merged.shrinkage = shrinkages(len(merged.sums[0]))[0]
    merged.count = np.concatenate(count)
    merged.gaussians.mean = np.concatenate([one.mean for one in each])
    merged.sums = merged.count[:, None] * merged.gaussians.mean
    merged.squares = _squares(merged, np.concatenate([one.covariance for one in each]))
    merged.update()
    return merged


class Clusters(NamedTuple):
    """Gaussians with their records (K,), means (K, d) and covariances (K, d, d)."""

    records: FloatArray
    mean: FloatArray
    covariance: FloatArray


def _clusters(part: Part) -> Clusters | None:
    mixture = part.network.mixture
    if mixture is None:
        return None
    return Clusters(mixture.count, mixture.gaussians.mean, mixture.gaussians.covariance())


def _whole_stream(part: Part) -> Clusters:
    """Return the Gaussian over the whole stream."""
    (gaussians,) = part.network.background.gaussians
    return Clusters(np.ones(1), gaussians.mean, gaussians.covariance())


def _squares(mixture: GaussianMixture, covariance: FloatArray) -> FloatArray:
    """Return sums of products that give Gaussians these covariances with little shrinkage.

    What each was drawn to is part of them: the Gaussians of other models shall not change it.
    """
    d, known = mixture.sums.shape[1], mixture.count + mixture.shrinkage
    widened = (1.0 + (d + 3.0) / (known + d)) / known  # see `shrink_to_pooled`
    about_mean = (covariance - LEAST_VARIANCE * np.eye(d)) / widened[:, None, None]
    about_zero = mixture.sums[:, :, None] * mixture.gaussians.mean[:, None, :]
    return np.tril(about_mean + about_zero)


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
