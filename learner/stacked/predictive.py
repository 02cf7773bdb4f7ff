"""Mixtures of missing variables given the observed ones, by stacked networks."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.components import Components, new_components
from faust_oslrau.learner.density.gaussians import alike

from . import predictive_kernels as kernels
from .background import N_BACKGROUND, WIDTHS
from .members import Member, Members, evaluate, mixed
from .network import Evaluated, StackedNetwork


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
    background, of_background = network.background, own[network.own_background]
    for missing, rows in alike(Z.T):
        kernels.add_products(
            missing, leaves.first, leaves.mean, np.sqrt(leaves.variance), products.W,
            own[:2].take(rows, axis=1), found.products[rows], rows, *units, components,
        )  # fmt: skip
        if network.mixture is not None:
            shares = own[2] * found.gaussians.T
            network.mixture.gaussians.add_given(Z, missing, shares, rows, units, components)
        for block, gaussians in zip(background.blocks, background.gaussians, strict=True):
            if missing[block].any():
                gaussians.add_given(
                    Z, missing, of_background, rows, units, components,
                    first=block.start, widths=WIDTHS,
                )  # fmt: skip
