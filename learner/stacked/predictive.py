"""Mixtures of missing variables given the observed ones, by stacked networks."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.components import Components, append, new_components
from faust_oslrau.learner.density.gaussians import alike
from faust_oslrau.learner.protocol import Predictive, RowPredictives, Which
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, aligned_stack, fma, load, spread, store

from . import members, predictive
from . import members as joint
from .background import N_BACKGROUND, WIDTHS
from .members import Joint, Member, Members, evaluate, mixed
from .network import Evaluated, StackedNetwork


class StackedEvaluation(NamedTuple):
    """Rows as a model sees them: what to tell of them, and what learning them would ask for again.

    Attributes
    ----------
    measures
        How usual each row is (m, 1): its log-density without a challenger.
    log_density
        The log-density of each row (m,).
    rows
        The rows (m, d).
    told
        What the networks under the root say of them.
    members, n_records
        Of the model, which had learned so many records.
    is_established
        Whether many records support every network.
    """

    measures: FloatArray
    log_density: FloatArray
    rows: FloatArray
    told: Joint
    members: list[Member]
    n_records: int
    is_established: bool

    @property
    def by_network(self) -> FloatArray:
        """Log-density (m, M) of each row by each network under the root."""
        return self.told.each

    def weighed(self, log_shares: FloatArray) -> Self:
        """Return the evaluation with other shares (m, M) of the networks in each row."""
        log_density = members.mixed(self.told.each, log_shares)[0]
        measures = log_density[:, None] if self.is_established else self.measures
        return self._replace(measures=measures, log_density=log_density)


class WeighedNetworks(RowPredictives):
    """The density of each of m rows, with shares of its own of each network.

    Parameters
    ----------
    members
        The networks.
    log_shares
        Logarithm of their shares of each row (m, M).
    established
        The density without what only recent records support; None if it is this one.
    """

    def __init__(
        self, members: Members, log_shares: FloatArray, established: Predictive | None
    ) -> None:
        self._members, self._log_shares = members, log_shares
        self._established = established

    def of(self, which: Which) -> Self:
        """Return the densities of some of the rows."""
        return type(self)(self._members, self._log_shares[which], self._established)

    @property
    def established(self) -> Predictive:
        """The density without what only recent records support."""
        return self if self._established is None else self._established

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density (m,) of each row of ``X`` (m, d) in nats."""
        rows = np.ascontiguousarray(X, np.float64)
        return joint.log_densities(self._members, rows, log_shares=self._log_shares)[0]

    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compare each field with the others of its row: see `Learner.given_others`."""
        rows = np.ascontiguousarray(X, np.float64)
        return joint.given_others(self._members, rows, self._log_shares)

    def predictive(self, X: FloatArray, more: int = 0) -> Components:
        """Return the Gaussians of the missing fields of rows: see `Predictive.predictive`."""
        return predictive.components_of(self._members, X, more, self._log_shares)


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
    Z, own = scaling.apply(X)[0], np.ascontiguousarray(share * found.shares.T)
    products, leaves = network.products, network.products.leaves
    background, of_background = network.background, own[network.own_background]
    for missing, rows in alike(Z.T):
        add_products(
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


@kernel
def add_products(
    missing: Array,
    first: Array,
    mean: Array,
    deviation: Array,
    W: Array,
    share: Array,
    shares: Array,
    rows: Array,
    location: Array,
    scale: Array,
    components: Components,
) -> None:
    """Add the leaves of ``missing`` (d,) variables, each with its weight in all products.

    ``share`` (2, m) are the probabilities of the product of marginals and of the sum of products,
    ``shares`` (m, K) those of the products in their sum, ``rows`` (m,) the columns' places among
    the ``components``. ``deviation`` (n,) are the leaves'; the others are as `SharedProducts` has
    them.
    """
    aligned_stack()
    m, K = shares.shape
    own, weight = np.zeros((K + 1, WIDTH)), np.empty((len(mean), WIDTH))
    for start in range(0, m, WIDTH):
        lanes = min(WIDTH, m - start)
        for i in range(lanes):
            own[0, i] = share[0, start + i]
            for k in range(K):
                own[k + 1, i] = share[1, start + i] * shares[start + i, k]
        for v in range(len(missing)):
            if not missing[v]:
                continue
            for n in range(first[v], first[v + 1]):
                total = spread(0.0)
                for k in range(K + 1):
                    total = fma(W[n, k], load(own, k, 0), total)
                store(weight, n, 0, total)
            for i in range(lanes):
                for n in range(first[v], first[v + 1]):
                    centre, wide = location[v] + scale[v] * mean[n], scale[v] * deviation[n]
                    append(v, rows[start + i], weight[n, i], centre, wide, components)
