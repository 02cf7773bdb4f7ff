"""The mixed density of rows, each with the covariance and weights of its own entity.

Its parts are the network, the kinds, which are Gaussians, and Student's t of each row's entity.
"""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density import components
from faust_oslrau.learner.density.components import Components
from faust_oslrau.learner.density.gaussians import Gaussians, alike, conditional
from faust_oslrau.learner.density.mixtures import log_sums, mix_given_others
from faust_oslrau.learner.protocol import Predictive, RowPredictives, Which

from . import student
from .habit_kernels import KINDS, NETWORK, OWN, Predicted


class Sampled(Predictive, Protocol):
    """A density that rows can be drawn from."""

    def sample(
        self, n: int = 1, *, given: ArrayLike | None = None, random_state: np.random.Generator
    ) -> FloatArray:
        """Draw ``n`` rows (n, d), with the observed fields of the row ``given`` held fixed."""


class MixedDensity(RowPredictives):
    """The density of each of some rows given its entity, for comparisons of their fields.

    Rows are in units of their entities, and may lack fields that the mixed ones had.

    Parameters
    ----------
    network
        The density that all entities share.
    kinds
        The Gaussians of the kinds.
    predicted
        The weights and Student's t of each row.
    """

    def __init__(self, network: Predictive, kinds: Gaussians, predicted: Predicted) -> None:
        self._network, self._kinds, self._predicted = network, kinds, predicted

    def of(self, which: Which) -> Self:
        """Return the densities of some of the rows, by a mask or by their numbers."""
        predicted = Predicted._make(column[which] for column in self._predicted)
        return type(self)(self._network, self._kinds, predicted)

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return the log-density (m,) of rows (m, d)."""
        rows = np.ascontiguousarray(X, np.float64)
        return log_sums(self._log_weights + self._log_densities(rows))

    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compare each field with the others of its row, as `OSLRAU.given_others` does."""
        rows = np.ascontiguousarray(X, np.float64)
        nats, mean, deviation = self._network.given_others(rows)
        log_density, log_weight = self._log_densities(rows), self._log_weights
        # fields that the network has not seen yet are missing to it
        others = log_density[:, :1] + np.nan_to_num(nats)
        told = np.stack([others, mean, deviation])[:, None]
        told = np.concatenate([told, self._of_gaussians(rows.T).swapaxes(2, 3)], axis=1)
        told[0] += log_weight.T[:, :, None]
        others, mean, deviation = mix_given_others(*told)
        nats = others - log_sums(log_weight + log_density)[:, None]
        return np.where(np.isnan(rows), np.nan, nats), mean, deviation

    def _of_gaussians(self, Z: FloatArray) -> FloatArray:
        """Return what `Gaussians.given_others` does of the kinds, then of Student's t."""
        scales, own, Z = self._scales, np.empty((3, *Z.shape)), np.ascontiguousarray(Z)
        student.given_others(Z, scales.whitening, scales.log_norm, self._predicted.freedom, own)
        return np.concatenate([self._kinds.given_others(Z), own[:, None]], axis=1)

    def predictive(self, X: FloatArray, more: int = 0) -> Components:
        """Return the Gaussians of the missing fields of rows: see `Predictive.predictive`."""
        predicted, Z = self._predicted, np.ascontiguousarray(X.T)
        found = self._of_network(X, len(self._kinds.mean) + student.NODES + more)
        share = self._log_weights
        if not np.isnan(X).all():
            share += self._log_densities(X)
        log_sums(share)
        of_network, *of_kinds, own = share.T.copy()
        components.weigh(of_network, found)
        units = np.zeros(len(Z)), np.ones(len(Z))
        for missing, rows in alike(X):
            self._kinds.add_given(Z, missing, np.array(of_kinds), rows, units, found)
        student.add_students(X, own, predicted.covariance, predicted.freedom, found)
        return found

    def _of_network(self, X: FloatArray, room: int) -> Components:
        """Return the network's Gaussians alone, with room for more.

        Those of rows of which nothing is known are worked out once.
        """
        if not np.isnan(X).all():
            return self._network.predictive(X, room)
        one = self._network.predictive(X[:1])
        most = int(one.n.max(initial=0))
        found = components.new_components(X.shape[1], len(X), most + room)
        found.n[:], found.parameters[:, :, :most] = one.n, one.parameters[:, :, :most]
        return found

    def draw(
        self, network: Sampled, row: FloatArray, n: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw ``n`` rows (n, d) with the observed fields of the one ``row`` (d,) held fixed.

        ``network`` is the one of this density.
        """
        found, missing = np.tile(row, (n, 1)), np.isnan(row)
        if not missing.any():
            return found
        share = self._log_weights + self._log_densities(row[None])
        log_sums(share)
        counts = rng.multinomial(n, share[0] / share.sum()).tolist()
        at = counts[0]
        if at > 0:
            found[:at] = network.sample(at, given=row, random_state=rng)
        gaussians = self._kinds.and_those(self._scales)
        for k, m in enumerate(counts[1:]):
            mean, covariance = conditional(gaussians.mean[k], gaussians.whitening[k], row)
            drawn = rng.multivariate_normal(
                np.zeros(missing.sum()), covariance[np.ix_(missing, missing)], m, method="eigh"
            )
            if k == len(counts) - 2:
                drawn *= self._widths(row, m, rng)
            found[at : at + m, missing] = mean[missing] + drawn
            at += m
        drawn_rows: FloatArray = rng.permutation(found)
        return drawn_rows

    def _widths(self, row: FloatArray, m: int, rng: np.random.Generator) -> FloatArray:
        """Draw by what factors (m, 1) the missing fields' deviations under Student's t differ."""
        n, freedom = np.count_nonzero(~np.isnan(row)), self._predicted.freedom[0]
        square = self._scales.distances(row[:, None])[0].item()
        precision = rng.chisquare(freedom + n, size=(m, 1))
        return np.asarray(np.sqrt((freedom + square) / precision), np.float64)

    @property
    def _log_weights(self) -> FloatArray:
        """Logarithms of the parts' weights (m, parts)."""
        weight, kind_weight = self._predicted.weight, self._predicted.kind_weight
        of_kinds = weight[:, KINDS, None] * kind_weight
        every = np.column_stack([weight[:, NETWORK], of_kinds, weight[:, OWN]])
        return np.asarray(np.log(every), np.float64)

    def _log_densities(self, rows: FloatArray) -> FloatArray:
        """Return the log-densities (m, parts) of rows (m, d)."""
        own, of_kinds = np.empty(len(rows)), self._kinds.log_densities(np.ascontiguousarray(rows.T))
        student.log_densities(rows, self._predicted.covariance, self._predicted.freedom, own)
        return np.column_stack([self._network.score_samples(rows), of_kinds.T, own])

    @property
    def _scales(self) -> Gaussians:
        """Gaussians that have the squared scales of the rows' Student's t as covariances."""
        m, d = len(self._predicted.freedom), self._kinds.mean.shape[1]
        covariance, (i, j) = np.zeros((m, d, d)), np.tril_indices(d)
        covariance[:, i, j] = self._predicted.covariance
        return Gaussians(np.zeros((m, d)), covariance)
