"""Online Bayesian moment matching of a structure's parameters (Jaini and others, 2016).

After each record the posterior is a mixture. It is replaced by one of the prior's family with the
same moments: for the weights of a sum a Dirichlet with the same means and the same sum of second
moments; for a leaf a normal-Wishart with the same E[Λ], E[Λμ], E[μ'Λμ] and sum of E[Λ_ii²]. In a
tree the mixture's weights are the shares of the nodes (Zhao and Gordon, 2017).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from benchmarks.datasets import Array

from .structure import Structure, TreeDensity


class NormalWishart:
    """Beliefs about the means (L, s) and precisions (L, s, s) of Gaussian leaves.

    They start as strong as one record for the mean and s + 2 for a covariance of 1.
    """

    def __init__(self, means: Array) -> None:
        n, s = means.shape
        self.mean = means
        self.strength = np.ones(n)
        self.freedom = np.full(n, s + 2.0)
        self.scale = np.tile(np.eye(s) / (s + 2.0), (n, 1, 1))
        self._log_det = np.linalg.slogdet(self.scale)[1]

    def log_predictive(self, points: Array) -> Array:
        """Log-density (L,) of what each leaf sees (L, s): Student's t."""
        s = points.shape[1]
        share, freedom = self.strength / (self.strength + 1.0), self.freedom
        log_norm = gammaln(0.5 * (freedom + 1.0)) - gammaln(0.5 * (freedom + 1.0 - s))
        log_norm += 0.5 * (s * np.log(share / np.pi) + self._log_det)
        return np.asarray(
            log_norm - 0.5 * (freedom + 1.0) * np.log1p(share * self._distance(points)[1])
        )

    def match(self, points: Array, probability: Array) -> None:
        """Learn points (L, s), each with the probability (L,) that it came from its leaf."""
        s = points.shape[1]
        kappa, nu, scale = self.strength, self.freedom, self.scale
        direction, distance = self._distance(points)
        share = kappa / (kappa + 1.0)
        shrunk = 1.0 + share * distance  # of which the conjugate update takes its part
        a, b = nu + probability, probability * (nu + 1.0) * share / shrunk
        outer = direction[:, :, None] * direction[:, None, :]
        precision = a[:, None, None] * scale - b[:, None, None] * outer
        gain = probability * (nu + 1.0) / ((kappa + 1.0) * shrunk * (a - b * distance))
        spread = (1.0 - probability) * (s / kappa + nu * gain**2 * distance)
        off = (nu + 1.0) * (1.0 / (kappa + 1.0) - gain) ** 2 * distance / shrunk
        spread += probability * (s / (kappa + 1.0) + off)
        self.freedom = self._matched_freedom(probability, share / shrunk, outer, precision)
        self._log_det += s * np.log(a / self.freedom) + np.log1p(-b * distance / a)
        self.mean = self.mean + gain[:, None] * (points - self.mean)
        self.strength = s / spread
        self.scale = precision / self.freedom[:, None, None]

    def covariances(self) -> Array:
        """Inverses (L, s, s) of the expected precisions."""
        return np.asarray(np.linalg.inv(self.freedom[:, None, None] * self.scale))

    def _distance(self, points: Array) -> tuple[Array, Array]:
        """Return W(x - m) (L, s) and (x - m)'W(x - m) (L,) for the scale W."""
        apart = points - self.mean
        direction = np.einsum("lij,lj->li", self.scale, apart)
        return direction, np.einsum("li,li->l", direction, apart)

    def _matched_freedom(
        self, probability: Array, taken: Array, outer: Array, precision: Array
    ) -> Array:
        before = np.diagonal(self.scale, axis1=1, axis2=2)
        after = before - taken[:, None] * np.diagonal(outer, axis1=1, axis2=2)
        nu, s = self.freedom, before.shape[1]
        squares = (1.0 - probability) * nu * (nu + 2.0) * (before**2).sum(axis=1)
        squares += probability * (nu + 1.0) * (nu + 3.0) * (after**2).sum(axis=1)
        means = (np.diagonal(precision, axis1=1, axis2=2) ** 2).sum(axis=1)
        # below s degrees of freedom a leaf would have no density
        return np.asarray(np.maximum(2.0 * means / (squares - means), s))


class MomentMatching:
    """Dirichlet counts for a structure's sums, normal-Wishart beliefs for its leaves."""

    def __init__(self, structure: Structure, means: Array) -> None:
        self._structure = structure
        self.leaves = NormalWishart(means)
        self.counts = np.ones(len(structure.kind))

    def learn(self, rows: Array) -> None:
        for points in self._structure.points(rows):
            weights = self._structure.weights(self.counts)
            values = self._structure.values(weights, self.leaves.log_predictive(points)[None])
            shares = self._structure.shares(weights, values)[0]
            self.counts = matched_counts(self._structure, self.counts, shares)
            self.leaves.match(points, shares[self._structure.leaves])

    def density(self) -> TreeDensity:
        """Return the network at the expected weights, means and precisions."""
        weights = self._structure.weights(self.counts)
        return TreeDensity(self._structure, weights, self.leaves.mean, self.leaves.covariances())


def matched_counts(structure: Structure, counts: Array, shares: Array) -> Array:
    """Return the Dirichlet counts (n,) after a record with these shares (n,) of the nodes."""
    total, used = structure.siblings_sum(counts), structure.siblings_sum(shares)
    mean = (1.0 - used) * counts / total + (used * counts + shares) / (total + 1.0)
    square = (1.0 - used) * counts * (counts + 1.0) / (total * (total + 1.0))
    square += (used * counts + 2.0 * shares) * (counts + 1.0) / ((total + 1.0) * (total + 2.0))
    missing = structure.siblings_sum(mean - square)
    return np.where(
        structure.of_sum, mean * missing / structure.siblings_sum(square - mean**2), 1.0
    )
