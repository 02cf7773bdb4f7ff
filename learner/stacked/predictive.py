"""Means and quantiles of missing variables given the observed ones, by stacked networks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.queries.components import (
    NEGLIGIBLE,
    ROWS,
    Components,
    append,
    new_components,
    summaries,
)
from faust_oslrau.learner.queries.predictive import (
    add_gaussian,
    add_network,
    condition,
    lacks_the_same,
    most_leaves,
)
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.math import exp_bounded

from .background import N_BACKGROUND, N_STRENGTHS, WIDTHS
from .coupled import CoupledGaussians
from .members import Member, Members, log_densities
from .network import StackedNetwork

FloatArray = NDArray[np.float64]


def conditional_quantiles(
    members: Members, X: FloatArray, levels: FloatArray, log_shares: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return means (m, d) and quantiles (q, m, d) of the missing values of rows ``X`` (m, d).

    ``log_shares`` (m, M) take the place of the members' own shares.
    """
    mean, quantiles = np.empty(X.shape), np.empty((len(levels), *X.shape))
    most = sum(_most_components(member.network) for member in members)
    for start in range(0, len(X), ROWS):
        rows = X[start : start + ROWS]
        components = new_components(X.shape[1], len(rows), most)
        own = None if log_shares is None else log_shares[start : start + ROWS]
        shares = log_densities(members, rows, log_shares=own)[1]
        for member, share in zip(members, np.ascontiguousarray(shares.T), strict=True):
            _add_member(member, rows, share, components)
        found = summaries(rows, components, levels)
        mean[start : start + ROWS], quantiles[:, start : start + ROWS] = found
    return mean, quantiles


def _most_components(network: StackedNetwork) -> int:
    most = int(np.diff(network.products.leaves.first).max()) + N_BACKGROUND
    if network.mixture is not None:
        most += len(network.mixture.weight)
    if network.tree is not None:
        most += most_leaves(network.tree.learner.network_)
    return most


def _add_member(
    member: Member, rows: FloatArray, share: FloatArray, components: Components
) -> None:
    """Add the Gaussians of each part of a network, which has ``share`` (m,) of the rows."""
    network, scaling = member.network, member.scaling
    Z = scaling.apply(rows)[0]
    units = scaling.location, scaling.scale
    found = network.evaluate(Z)
    own = np.empty((len(network.weight), len(rows)))
    share_out(found.experts, found.log_density, network.weight, share, own)
    products, leaves = network.products, network.products.leaves
    add_products(
        Z, leaves.first, leaves.mean, leaves.variance, products.W,
        own[:2], found.products, *units, components,
    )  # fmt: skip
    everything = np.arange(len(Z))
    if network.mixture is not None:
        gaussians = network.mixture.gaussians
        for k in range(len(gaussians.mean)):
            add_gaussian(
                Z, everything, gaussians.mean[k], gaussians.whitening[k], 1.0,
                own[2] * found.gaussians[:, k], *units, components,
            )  # fmt: skip
    _add_background(network.background.gaussians, Z, own[network.own_background], units, components)
    if network.tree is not None:
        add_network(network.tree.learner.network_, Z, own[-1], scaling, components)


def _add_background(
    coupled: CoupledGaussians,
    Z: FloatArray,
    share: FloatArray,
    units: tuple[FloatArray, FloatArray],
    components: Components,
) -> None:
    """Add the Gaussian over the whole stream, each strength and width with its ``share`` (6, m)."""
    mean, covariance = coupled.factors(Z)
    everything = np.arange(len(Z))
    for i, one in enumerate(share):
        k, width = min(i, N_STRENGTHS - 1), 1.0
        if i >= N_STRENGTHS:
            width = float(WIDTHS[i - N_STRENGTHS])
        for block, gaussians in zip(coupled.blocks, coupled.gaussians, strict=True):
            add_driven_gaussian(
                Z, everything[block], gaussians.mean[k], gaussians.whitening[k],
                coupled.loadings[k, block], mean[k], covariance[k], width, one, *units, components,
            )  # fmt: skip


@kernel
def add_driven_gaussian(
    Z: Array,
    scope: Array,
    mean: Array,
    whitening: Array,
    loadings: Array,
    factor_mean: Array,
    factor_covariance: Array,
    width: float,
    share: Array,
    location: Array,
    scale: Array,
    components: Components,
) -> None:
    """Add a Gaussian of the variables ``scope`` (k,) as `add_gaussian` does, driven by factors.

    ``mean`` and ``whitening`` are those with factors of 0, ``loadings`` are (k, q). What is
    observed gives the factors a mean (m, q) and a covariance (m, q, q).
    """
    k = len(scope)
    missing, rest, driven = np.zeros(k, np.bool_), np.empty((k, k)), np.empty(loadings.shape)
    n = 0
    for r in range(len(share)):
        if share[r] <= NEGLIGIBLE:
            continue
        if not lacks_the_same(Z, scope, r, missing) or n == 0:
            n = condition(whitening, missing, rest)
            condition_loadings(loadings, missing, rest, driven)
        row = 0
        for a in range(k):
            if missing[a]:
                centre, variance = mean[a], rest[row, a]
                for b in range(k):
                    if not missing[b]:
                        centre -= rest[row, b] * (Z[scope[b], r] - mean[b])
                for j in range(len(factor_mean[r])):
                    centre += driven[row, j] * factor_mean[r, j]
                    for i in range(len(factor_mean[r])):
                        variance += driven[row, j] * driven[row, i] * factor_covariance[r, j, i]
                v = scope[a]
                variance *= (width * scale[v]) ** 2
                append(v, r, share[r], location[v] + scale[v] * centre, variance, components)
                row += 1


@kernel
def condition_loadings(loadings: Array, missing: Array, rest: Array, driven: Array) -> None:
    """Fill rows of ``driven`` with what factors add to missing variables given the observed ones.

    ``rest`` is what `condition` fills.
    """
    row = 0
    for a in range(len(missing)):
        if missing[a]:
            for j in range(loadings.shape[1]):
                driven[row, j] = loadings[a, j]
                for b in range(len(missing)):
                    if not missing[b]:
                        driven[row, j] += rest[row, b] * loadings[b, j]
            row += 1


@kernel
def share_out(
    experts: Array, log_density: Array, weight: Array, share: Array, result: Array
) -> None:
    """Fill ``result`` (E, m) with the probability of each child of the root in each row.

    ``experts`` (m, E) and ``log_density`` (m,) are log-densities of the children and the root.
    """
    for e in range(len(weight)):
        for r in range(len(share)):
            likelier = exp_bounded(experts[r, e] - log_density[r])
            result[e, r] = share[r] * weight[e] * likelier


@kernel
def add_products(
    Z: Array,
    first: Array,
    mean: Array,
    variance: Array,
    W: Array,
    share: Array,
    shares: Array,
    location: Array,
    scale: Array,
    components: Components,
) -> None:
    """Add the leaves of missing variables, each with its weight in all products.

    ``share`` (2, m) are the probabilities of the product of marginals and of the sum of products,
    ``shares`` (m, K) those of the products in their sum. The others are as `SharedProducts` has
    them.
    """
    for v in range(len(first) - 1):
        for r in range(Z.shape[1]):
            if Z[v, r] != Z[v, r]:
                for n in range(first[v], first[v + 1]):
                    weight = 0.0
                    for k in range(shares.shape[1]):
                        weight += shares[r, k] * W[n, k + 1]
                    weight = share[0, r] * W[n, 0] + share[1, r] * weight
                    centre = location[v] + scale[v] * mean[n]
                    append(v, r, weight, centre, variance[n] * scale[v] * scale[v], components)
