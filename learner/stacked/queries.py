"""Exact queries on a stacked network beyond its density, in the network's own units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.density.gaussians import Gaussians, conditional
from faust_oslrau.learner.density.given_others import add_gaussians
from faust_oslrau.learner.density.mixing import total_moments
from faust_oslrau.learner.density.mixtures import MEAN, REFERENCE, VARIANCE, clear, close
from faust_oslrau.learner.vector.blocks import copy_columns
from faust_oslrau.learner.vector.lanes import WIDTH

from .background import WIDTHS, Background
from .network import StackedNetwork
from .product_kernels import add_products_given_others

FloatArray = NDArray[np.float64]

LEAST_SHARE = 1e-12
"""Parts of the network with less than this share of a row do not count in its moments."""


def given_others(network: StackedNetwork, Z: FloatArray) -> FloatArray:
    """Tell what the other variables of each column of ``Z`` (d, m) say of each one.

    Returns (3, d, m): the log-density of the others, and mean and variance given them, in which
    wide leaves and the widths of Gaussians do not count.
    """
    d, m = Z.shape
    result, block = np.empty((3, d, m)), np.zeros((d, WIDTH))
    mixtures = np.empty((4 * d, WIDTH))
    products, log_weight = network.products, log_product_weights(network)
    coefficients, moments = products.leaves.coefficients(0.0), products.conditional_moments()
    for start in range(0, m, WIDTH):
        n = min(WIDTH, m - start)
        copy_columns(Z, start, n, block)
        clear(mixtures, d)
        add_products_given_others(
            block, products.leaves.first, coefficients, products.W, log_weight, moments, mixtures
        )
        for own, gaussians, widths, weights, rest in gaussian_parts(network, block):
            add_gaussians(
                block, np.arange(own.start, own.stop), n, gaussians.mean, gaussians.whitening,
                gaussians.log_norm, widths, weights, rest, mixtures,
            )  # fmt: skip
        close(mixtures, d, n)
        said = mixtures.reshape(4, d, WIDTH)[[REFERENCE, MEAN, VARIANCE], :, :n]
        result[:, :, start : start + n] = said
    return result


def log_product_weights(network: StackedNetwork) -> FloatArray:
    """Logarithmic weights (K + 1,) of the product of marginals and of the others in the root."""
    weight = np.concatenate([[network.weight[0]], network.weight[1] * network.products.weight])
    return np.asarray(np.log(weight), np.float64)


def gaussian_parts(
    network: StackedNetwork, Z: FloatArray
) -> Iterator[tuple[slice, Gaussians, FloatArray, FloatArray, FloatArray]]:
    """Yield blocks of variables and their Gaussians.

    Then their widths (S,), their logarithmic weights (K, S) in the root, and what the other
    variables of columns (d, m) have: squared distances, log-densities at distance 0, and how many
    are observed (3, m).
    """
    nothing = np.zeros((3, Z.shape[1]))
    if network.mixture is not None:
        weight = np.log(network.weight[2] * network.mixture.weight)
        yield slice(0, len(Z)), network.mixture.gaussians, np.ones(1), weight[:, None], nothing
    background, weights = network.background, np.log(network.background_weights)[None]
    each = [
        np.stack([*told, np.count_nonzero(~np.isnan(Z[own]), axis=0)])
        for own, told in zip(background.blocks, background.distances_of_blocks(Z), strict=True)
    ]
    for b, (own, gaussians) in enumerate(zip(background.blocks, background.gaussians, strict=True)):
        rest = sum(each[:b] + each[b + 1 :], nothing)
        yield own, gaussians, WIDTHS, weights, rest


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
    own = network.weight * np.exp(found.experts[0] - found.log_density[0])
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
