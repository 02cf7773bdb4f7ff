"""Gaussians with full covariances, side by side: marginals, and some variables given others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.vector.blocks import neighbours_together
from faust_oslrau.learner.vector.lanes import WIDTH

from . import gaussian_kernels as kernels
from . import missing_kernels
from .components import Components
from .given_others import add_gaussians, condition_each, tell_columns


class Given(NamedTuple):
    """Gaussians of some variables given the others.

    Attributes
    ----------
    gain
        What their means gain by each deviation of an observed variable (K, missing, observed).
    deviation
        Their deviations (K, missing).
    """

    gain: FloatArray
    deviation: FloatArray


class Gaussians:
    """Gaussians of the same variables: ``mean`` (K, d), and ``whitening`` (K, d, d)."""

    def __init__(self, mean: FloatArray, covariance: FloatArray) -> None:
        """Take means, and covariances of which the lower triangles are looked at."""
        self.mean = mean
        self._marginals: dict[int, Gaussians] = {}
        self._given: dict[int, Given] = {}
        self.whitening, self.log_norm = np.empty_like(covariance), np.empty(len(mean))
        kernels.factorise(covariance, self.whitening, self.log_norm)

    def part(self, which: slice | IntArray) -> Gaussians:
        """Return some of the Gaussians."""
        return Gaussians._of(self.mean[which], self.whitening[which], self.log_norm[which])

    def and_those(self, others: Gaussians) -> Gaussians:
        """Return these Gaussians and then others."""
        return Gaussians._of(
            np.concatenate([self.mean, others.mean]),
            np.concatenate([self.whitening, others.whitening]),
            np.concatenate([self.log_norm, others.log_norm]),
        )

    @classmethod
    def _of(cls, mean: FloatArray, whitening: FloatArray, log_norm: FloatArray) -> Gaussians:
        found = cls.__new__(cls)
        found._marginals, found._given = {}, {}
        found.mean, found.whitening, found.log_norm = mean, whitening, log_norm
        return found

    def log_densities(self, Z: FloatArray) -> FloatArray:
        """Log-densities (K, m) of the columns of ``Z`` (d, m)."""
        distance, norm = self.distances(Z)
        return norm - 0.5 * distance

    def tell(self, Z: FloatArray) -> FloatArray:
        """Return what the other variables of columns ``Z`` (d, m) say of each one, (4, K, d, m).

        Their squared distance, their log-density at distance 0, and mean and variance given them.
        """
        (K, d), m = self.mean.shape, Z.shape[1]
        told = np.empty((K, 4 * d, m))
        for k in range(K):
            tell_columns(Z, 0, m, self.mean[k], self.whitening[k], self.log_norm[k], told[k])
        return told.reshape(K, 4, d, m).swapaxes(0, 1)

    def given_others(self, Z: FloatArray) -> FloatArray:
        """Return what `mix_given_others` takes of them, (3, K, d, m)."""
        distance, norm, mean, variance = self.tell(np.ascontiguousarray(Z))
        return np.stack([norm - 0.5 * distance, mean, np.sqrt(variance)])

    def distances(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Squared distances and log-densities at distance 0, (K, m) each, of what is observed."""
        distance, norm = np.empty((2, len(self.mean), Z.shape[1]))
        if np.isnan(Z[0]).all():  # as in records that are foreseen
            self._measure_incomplete(Z, np.arange(Z.shape[1]), distance, norm)
        elif not kernels.distances(Z, self.mean, self.whitening, self.log_norm, distance, norm):
            self._measure_incomplete(Z, np.flatnonzero(distance[0] < 0.0), distance, norm)
        return distance, norm

    def _measure_incomplete(
        self, Z: FloatArray, columns: IntArray, distance: FloatArray, norm: FloatArray
    ) -> None:
        """Fill in what is said of incomplete columns.

        Those that lack the first variables and no other, as the past of a widened row does, need
        the Gaussians of the other variables only. Nothing is said of those that lack all.
        """
        lacking = first_missing(Z[:, columns])
        for first in np.unique(lacking).tolist():
            some = columns[lacking == first]
            if first == len(Z):
                distance[:, some], norm[:, some] = 0.0, 0.0
            elif first > 0:
                marginal = self._marginal(first)
                rest = np.ascontiguousarray(Z[first:, some])
                distance[:, some], norm[:, some] = marginal.distances(rest)
            else:
                if len(some) > WIDTH:
                    some = some[neighbours_together(Z[:, some])]
                found, norms = np.empty((2, len(self.mean), len(some)))
                rest = np.ascontiguousarray(Z[:, some])
                missing_kernels.incomplete_distances(
                    rest, self.mean, self.whitening, self.log_norm, found, norms
                )
                distance[:, some], norm[:, some] = found, norms

    def _marginal(self, first: int) -> Gaussians:
        """Return the Gaussians of the variables from ``first`` on."""
        if first not in self._marginals:
            K, d = self.mean.shape
            covariance = np.zeros((K, d - first, d - first))
            missing_kernels.covariance_of_last(self.whitening, first, covariance)
            mean = np.ascontiguousarray(self.mean[:, first:])
            self._marginals[first] = Gaussians(mean, covariance)
        return self._marginals[first]

    def given(self, missing: Mask) -> Given:
        """Return the Gaussians of the ``missing`` variables (d,) given the others.

        Where these are the first ones, as in a record that is foreseen, they are worked out once.
        """
        n = int(np.count_nonzero(missing))
        is_first = bool(missing[:n].all())
        if is_first and n in self._given:
            return self._given[n]
        K, d = self.mean.shape
        given = Given(np.empty((K, n, d - n)), np.empty((K, n)))
        condition_each(self.whitening, missing, *given)
        if is_first:
            self._given[n] = given
        return given

    def add_given(
        self,
        Z: FloatArray,
        missing: Mask,
        shares: FloatArray,
        rows: IntArray,
        units: tuple[FloatArray, FloatArray],
        components: Components,
    ) -> None:
        """Add the Gaussians given what is observed in some columns ``rows`` (k,) of ``Z`` (d, m).

        All columns lack ``missing`` (d,). ``shares`` (K, m) are the Gaussians' probabilities;
        ``units`` are location and scale (d,) of the components.
        """
        add_gaussians(
            Z.take(rows, axis=1), missing, self.mean, *self.given(missing),
            shares.take(rows, axis=1), rows, *units, components,
        )  # fmt: skip


def conditional(
    mean: FloatArray, whitening: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) of one Gaussian given what is observed of ``z`` (d,)."""
    d = len(z)
    x, block, covariance = np.empty(d), np.empty((d, d)), np.zeros((d, d))
    n = missing_kernels.fill_missing(
        np.ascontiguousarray(z)[:, None],
        np.arange(d),
        0,
        mean,
        whitening,
        np.empty((2 * d, d)),
        x,
        block,
    )
    missing = np.flatnonzero(np.isnan(z))
    covariance[np.ix_(missing, missing)] = block[:n, :n]
    return x, covariance


def alike(X: FloatArray) -> Iterator[tuple[Mask, IntArray]]:
    """Yield what some rows of ``X`` (m, d) lack and which these are, unless they lack nothing."""
    lacks = np.isnan(X, order="C")
    if (lacks == lacks[:1]).all():  # as most often, and far faster
        patterns, which = lacks[:1], np.zeros(len(X), np.int64)
    else:
        patterns, which = np.unique(lacks, axis=0, return_inverse=True)
    for number, missing in enumerate(patterns):
        if missing.any():
            yield missing, np.flatnonzero(which.ravel() == number)


def first_missing(Z: FloatArray) -> IntArray:
    """Return how many values each column (d, m) lacks if these are its first ones, else 0."""
    missing = np.isnan(Z)
    n = np.count_nonzero(missing, axis=0)
    is_first = (missing == (np.arange(len(Z))[:, None] < n)).all(axis=0)
    return np.where(is_first, n, 0)
