"""Several networks under one root, each in units of its own: exact queries on all of them.

The children of the root are those of every member, each with its weight in the member times the
member's share. Log-densities are in nats and in the variables' own units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, Mask
from faust_oslrau.learner.density.mixtures import log_sums, mix_given_others, total_moments
from faust_oslrau.learner.queries.scaling import Scaling

from . import queries
from .network import Evaluated, StackedNetwork

MOST_TIMES = 1e150
"""Ratio of two scales that larger ones count as, so that its square is a number."""


class Member(NamedTuple):
    """A network with its units, and its share of the root."""

    share: float
    network: StackedNetwork
    scaling: Scaling


Members = Sequence[Member]


class Joint(NamedTuple):
    """What members say of rows (m, d).

    Attributes
    ----------
    log_density
        Of the root (m,).
    each
        Of each member (m, M).
    evaluated
        What the network of each says of them, in its units.
    """

    log_density: FloatArray
    each: FloatArray
    evaluated: tuple[Evaluated, ...]

    def take(self, member: int, rows: Mask) -> Evaluated:
        """Return what one member says of some of the rows, to the same bits as of these alone."""
        return Evaluated(*(part[rows] for part in self.evaluated[member]))


def evaluate(members: Members, X: FloatArray) -> Joint:
    """Evaluate the rows of ``X`` (m, d)."""
    each, evaluated = np.empty((len(X), len(members))), []
    for i, member in enumerate(members):
        Z, jacobian = member.scaling.apply(X)
        evaluated.append(member.network.evaluate(Z))
        each[:, i] = evaluated[-1].log_density - jacobian
    return Joint(mixed(each, _log_shares(members))[0], each, tuple(evaluated))


def log_densities(
    members: Members,
    X: FloatArray,
    floor: FloatArray | float = 0.0,
    log_shares: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Log-density (m,) of the rows of ``X`` (m, d), and the members' shares (m, M) in it.

    ``floor`` is the least variance of leaves in the units of the first member: a number or one for
    each variable (d,). ``log_shares`` (m, M) take the place of the members' own shares.
    """
    each = np.empty((len(X), len(members)))
    for i, member in enumerate(members):
        Z, jacobian = member.scaling.apply(X)
        least = floor
        if i > 0:
            times = np.minimum(members[0].scaling.units[1] / member.scaling.units[1], MOST_TIMES)
            least = np.asarray(floor) * times**2
        each[:, i] = member.network.log_density(Z, least) - jacobian
    return mixed(each, _log_shares(members, log_shares))


def mixed(each: FloatArray, log_shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of the mixture (m,) of densities (m, M), and the posterior shares.

    ``log_shares`` are those before, (M,), or (m, M) if each row has its own.
    """
    if each.shape[1] == 1:
        return each[:, 0].copy(), np.ones_like(each)
    shares = each + log_shares
    return log_sums(shares), shares


def _log_shares(members: Members, log_shares: FloatArray | None = None) -> FloatArray:
    """Return the given shares of each row (m, M), else the members' own (M,), as logarithms."""
    return np.log([member.share for member in members]) if log_shares is None else log_shares


def given_others(
    members: Members, X: FloatArray, log_shares: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return -log p(x_i | the others), and mean and deviation given them, (m, d) each.

    ``log_shares`` (m, M) take the place of the members' own shares.
    """
    each = [_others(member, X) for member in members]
    others, means, deviations = map(np.stack, zip(*each, strict=True))
    others += np.atleast_2d(_log_shares(members, log_shares)).T[:, :, None]
    unit = np.maximum.reduce([member.scaling.units[1] for member in members])
    total, mean, deviation = mix_given_others(others, means, deviations, unit)
    nats = total - log_densities(members, X, log_shares=log_shares)[0][:, None]
    return np.where(np.isnan(X), np.nan, nats), mean, deviation


def _others(member: Member, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what `mix_given_others` takes of a member, (m, d) each."""
    (location, scale), (Z, jacobian) = member.scaling.units, member.scaling.apply(X)
    others, mean, deviation = queries.given_others(member.network, Z)
    others += np.where(np.isnan(Z), 0.0, np.log(scale)[:, None]) - jacobian
    return others.T, mean.T * scale + location, deviation.T * scale


def moments(members: Members, row: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) given what is observed of ``row`` (d,)."""
    share = log_densities(members, row[None])[1][0]
    means, covariances = zip(*[_moments(member, row) for member in members], strict=True)
    return total_moments(share, np.array(means), np.array(covariances))


def _moments(member: Member, row: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean, covariance = queries.moments(member.network, member.scaling.apply(row[None])[0][:, 0])
    (location, scale), missing = member.scaling.units, np.isnan(row)
    mean = np.where(missing, mean * scale + location, row)
    covariance = covariance * np.outer(scale, scale)
    return mean, np.where(np.outer(missing, missing), covariance, 0.0)


def sample(members: Members, n: int, rng: np.random.Generator, row: FloatArray) -> FloatArray:
    """Draw ``n`` rows (n, d) from the density given what is observed of ``row`` (d,)."""
    rows, picks = np.tile(row, (n, 1)), np.zeros(n, np.int64)
    if len(members) > 1:
        share = log_densities(members, row[None])[1][0]
        picks = rng.choice(len(members), size=n, p=share / share.sum())
    for i, (_, network, scaling) in enumerate(members):
        chosen, (location, scale) = picks == i, scaling.units
        z = scaling.apply(row[None])[0][:, 0]
        drawn = queries.sample(network, int(chosen.sum()), rng, z) * scale + location
        rows[chosen] = np.where(np.isnan(row), drawn, row)
    return rows
