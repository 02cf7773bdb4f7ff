"""Mixtures of missing variables given the observed ones, by stacked networks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.queries.components import Components, new_components
from faust_oslrau.learner.queries.predictive import add_network, most_leaves

from . import predictive_kernels as kernels
from .background import N_BACKGROUND, N_STRENGTHS, WIDTHS
from .coupled import CoupledGaussians
from .gaussians import Gaussians
from .members import Member, Members, evaluate, mixed
from .network import Evaluated, StackedNetwork

FloatArray = NDArray[np.float64]


def components_of(
    members: Members, X: FloatArray, more: int = 0, log_shares: FloatArray | None = None
) -> Components:
    """Return the mixtures of the missing values of rows ``X`` (m, d), with room for ``more``.

    ``log_shares`` (m, M) take the place of the members' own shares.
    """
    most = sum(_most_components(member.network) for member in members) + more
    components = new_components(X.shape[1], len(X), most)
    joint = evaluate(members, X)
    own = np.log([member.share for member in members]) if log_shares is None else log_shares
    shares = np.ascontiguousarray(mixed(joint.each, own)[1].T)
    for member, evaluated, share in zip(members, joint.evaluated, shares, strict=True):
        _add_member(member, X, evaluated, share, components)
    return components


def _most_components(network: StackedNetwork) -> int:
    most = int(np.diff(network.products.leaves.first).max()) + N_BACKGROUND
    if network.mixture is not None:
        most += len(network.mixture.weight)
    if network.tree is not None:
        most += most_leaves(network.tree.learner.network_)
    return most


def _add_member(
    member: Member, X: FloatArray, found: Evaluated, share: FloatArray, components: Components
) -> None:
    """Add the Gaussians of each part of a network, which has ``share`` (m,) of the rows.

    ``found`` is what it says of them.
    """
    network, scaling = member.network, member.scaling
    units = scaling.location, scaling.scale
    Z, own = scaling.apply(X)[0], np.empty((len(network.weight), len(X)))
    kernels.share_out(found.experts, found.log_density, network.weight, share, own)
    products, leaves = network.products, network.products.leaves
    background, of_background = network.background.gaussians, own[network.own_background]
    for missing, rows in alike(Z.T):
        kernels.add_products(
            missing, leaves.first, leaves.mean, np.sqrt(leaves.variance), products.W,
            own[:2].take(rows, axis=1), found.products[rows], rows, *units, components,
        )  # fmt: skip
        if network.mixture is not None:
            shares = own[2] * found.gaussians.T
            add_gaussians(network.mixture.gaussians, Z, missing, shares, rows, units, components)
        if background.n_factors == 0:
            strengths = background.gaussians[0]
            add_gaussians(strengths, Z, missing, of_background, rows, units, components)
    if background.n_factors > 0:
        _add_driven(background, Z, of_background, units, components)
    if network.tree is not None:
        add_network(network.tree.learner.network_, Z, own[-1], scaling, components)


def alike(X: FloatArray) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """Yield what some rows of ``X`` (m, d) lack and which these are, unless they lack nothing."""
    patterns, which = np.unique(np.isnan(X), axis=0, return_inverse=True)
    for number, missing in enumerate(patterns):
        if missing.any():
            yield missing, np.flatnonzero(which.ravel() == number)


def add_gaussians(
    gaussians: Gaussians,
    Z: FloatArray,
    missing: NDArray[np.bool_],
    shares: FloatArray,
    rows: NDArray[np.int64],
    units: tuple[FloatArray, FloatArray],
    components: Components,
) -> None:
    """Add K Gaussians given what is observed in some columns ``rows`` (k,) of ``Z`` (d, m).

    All of these lack ``missing`` (d,). ``shares`` (K, m) are the Gaussians' probabilities; the last
    Gaussian may have some more of them, at its larger widths.
    """
    given = gaussians.given(missing)
    of = np.minimum(np.arange(len(shares)), len(gaussians.mean) - 1)
    widths = np.concatenate([np.ones(len(gaussians.mean)), WIDTHS])[: len(shares)]
    kernels.add_gaussians(
        Z.take(rows, axis=1), missing, gaussians.mean[of], given.gain[of], given.deviation[of],
        widths, shares.take(rows, axis=1), rows, *units, components,
    )  # fmt: skip


def _add_driven(
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
            kernels.add_driven_gaussian(
                Z, everything[block], gaussians.mean[k], gaussians.whitening[k],
                coupled.loadings[k, block], mean[k], covariance[k], width, one, *units, components,
            )  # fmt: skip
