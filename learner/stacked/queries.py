"""Exact queries on a stacked network beyond its density, in the network's own units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.gaussians import conditional
from faust_oslrau.learner.density.mixtures import mix_given_others, total_moments

from .background import WIDTHS, Background
from .network import StackedNetwork

ROWS = 64
"""Rows of which the parts of a network tell at a time."""

LEAST_SHARE = 1e-12
"""Parts of the network with less than this share of a row do not count in its moments."""


def given_others(network: StackedNetwork, Z: FloatArray) -> FloatArray:
    """Tell what the other variables of each column of ``Z`` (d, m) say of each one.

    Returns (3, d, m): the log-density of the others, and mean and deviation given them, in which
    wide leaves and the widths of Gaussians do not count.
    """
    result = np.empty((3, *Z.shape))
    for start in range(0, Z.shape[1], ROWS):
        at = slice(start, start + ROWS)
        told = _told(network, np.ascontiguousarray(Z[:, at]))
        result[:, :, at] = mix_given_others(*map(np.concatenate, zip(*told, strict=True)))
    return result


def _told(network: StackedNetwork, Z: FloatArray) -> Iterator[tuple[FloatArray, ...]]:
    """Yield what `mix_given_others` takes of the products, the mixture and the background."""
    products, weight = network.products, np.log(network.weight)
    others, moments = products.given_others(Z), products.conditional_moments()
    others[0] += weight[0]
    others[1:] += (weight[1] + np.log(products.weight))[:, None, None]
    means, variances = (np.broadcast_to(each.T[:, :, None], others.shape) for each in moments)
    yield others, means, np.sqrt(variances)
    if network.mixture is not None:
        others, means, deviations = network.mixture.gaussians.given_others(Z)
        own = weight[2] + np.log(network.mixture.weight)
        yield others + own[:, None, None], means, deviations
    others, means, deviations = network.background.given_others(Z)
    yield others + np.log(network.background_weights)[:, None, None], means, deviations


class Part(NamedTuple):
    """A part of the network, given what is observed.

    Attributes
    ----------
    share
        Its probability given what is observed.
    mean, covariance
        Moments of all variables (d,) and (d, d), without wide leaves; a product's are diagonal.
    width
        Factor by which deviations of the part's Gaussian exceed those of its covariance.
    product
        Number of the product in the columns of W, or None.
    """

    share: float
    mean: FloatArray
    covariance: FloatArray
    product: int | None
    width: float = 1.0


def parts(network: StackedNetwork, z: FloatArray) -> list[Part]:
    """Take the network apart for one row ``z`` (d,), by what each part says of what it lacks."""
    found, missing = network.evaluate(z[:, None]), np.isnan(z)
    own = found.shares[0]
    shares = np.concatenate([[own[0]], own[1] * found.products[0]])
    means, variances = network.products.conditional_moments()
    result = []
    for k in np.flatnonzero(shares > LEAST_SHARE).tolist():
        mean = np.where(missing, means[:, k], z)
        covariance = np.diag(np.where(missing, variances[:, k], 0.0))
        result.append(Part(float(shares[k]), mean, covariance, k))
    if network.mixture is not None:
        gaussians, shares = network.mixture.gaussians, own[2] * found.gaussians[0]
        for i in np.flatnonzero(shares > LEAST_SHARE).tolist():
            mean, covariance = conditional(gaussians.mean[i], gaussians.whitening[i], z)
            result.append(Part(float(shares[i]), mean, covariance, None))
    mean, covariance = _of_background(network.background, z)
    for width, share in zip(WIDTHS.tolist(), own[network.own_background].tolist(), strict=True):
        if share > LEAST_SHARE:
            result.append(Part(share, mean, covariance, None, width))
    return result


def _of_background(background: Background, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) of the background given what is observed of ``z``."""
    mean, covariance = np.empty(len(z)), np.zeros((len(z), len(z)))
    for own, gaussians in zip(background.blocks, background.gaussians, strict=True):
        whitening = gaussians.whitening[0]
        mean[own], covariance[own, own] = conditional(gaussians.mean[0], whitening, z[own])
    return mean, covariance


def moments(network: StackedNetwork, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) given what is observed of ``z`` (d,).

    Wide leaves and the widths of Gaussians do not count.
    """
    found = parts(network, z)
    share = np.array([part.share for part in found])
    means, covariances = np.array([p.mean for p in found]), np.array([p.covariance for p in found])
    return total_moments(share / share.sum(), means, covariances)


def sample(network: StackedNetwork, n: int, rng: np.random.Generator, z: FloatArray) -> FloatArray:
    """Draw ``n`` rows (n, d) from the density given what is observed of ``z`` (d,)."""
    found = parts(network, z)
    share = np.array([part.share for part in found])
    picks = rng.choice(len(found), size=n, p=share / share.sum())
    rows, missing = np.tile(z, (n, 1)), np.flatnonzero(np.isnan(z))
    for i in np.unique(picks).tolist() if len(missing) else []:
        chosen, part = np.flatnonzero(picks == i), found[i]
        if part.product is not None:
            for v in missing.tolist():
                rows[chosen, v] = _draw_leaves(network, part.product, v, len(chosen), rng)
        else:
            draws = rng.multivariate_normal(
                part.mean[missing], part.width**2 * part.covariance[np.ix_(missing, missing)],
                len(chosen), method="cholesky",
            )  # fmt: skip
            rows[np.ix_(chosen, missing)] = draws
    return rows


def _draw_leaves(
    network: StackedNetwork, product: int, v: int, n: int, rng: np.random.Generator
) -> FloatArray:
    leaves = network.products.leaves
    own = slice(*leaves.first[v : v + 2])
    share = network.products.W[own, product]
    picks = rng.choice(len(share), size=n, p=share / share.sum())
    return rng.normal(leaves.mean[own][picks], np.sqrt(leaves.variance[own][picks]))
