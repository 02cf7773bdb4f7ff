"""Oracle of the mixed density of an entity: plain Python and scipy, one record at a time."""

from typing import NamedTuple

import numpy as np
from densities import given
from scipy import special, stats

from faust_oslrau.learner.entities import habit_kernels as habits


class Common(NamedTuple):
    """What all entities share, and means and covariances of the kinds, lower triangles."""

    weight: np.ndarray
    second_moment: np.ndarray
    common: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray


def full(lower, d):
    """Return the symmetric matrix of a lower triangle."""
    matrix = np.zeros((d, d))
    matrix[np.tril_indices(d)] = lower
    return matrix + np.tril(matrix, -1).T


class NaiveHabits:
    """Predicts and learns records of one entity; ``shared`` is what all entities share."""

    def __init__(self, shared):
        self.shared, self.d = shared, shared.mean.shape[1]
        self.age, self.count = 0, 0.0
        self.weights, self.kinds = np.zeros(habits.DENSITIES), np.zeros(len(shared.weight))
        self.products = np.zeros((self.d, self.d))

    def kind_weights(self):
        strength = habits.KIND_STRENGTH
        return (strength * self.shared.weight + self.kinds) / (strength + self.kinds.sum())

    def own_covariance(self):
        strength = habits.OWN_STRENGTH * self.d
        around = sum(
            weight * full(moment, self.d)
            for weight, moment in zip(self.kind_weights(), self.shared.second_moment, strict=True)
        )
        covariance = (strength * around + self.count * self.products) / (strength + self.count)
        return covariance, max(strength + self.count - self.d, 0) + 5.0

    def density_weights(self):
        share = max(0.05, min(1.0, 4.0 / self.age)) if self.age else 1.0
        return share * self.shared.common + (1 - share) * self.weights

    def logs(self, row, network):
        """Return the log-densities of the row by each of the densities, and those of the kinds."""
        seen = ~np.isnan(row)
        at = np.ix_(seen, seen)
        of_kinds = np.array(
            [
                stats.multivariate_normal(mean[seen], full(lower, self.d)[at]).logpdf(row[seen])
                for mean, lower in zip(self.shared.mean, self.shared.covariance, strict=True)
            ]
        )
        covariance, freedom = self.own_covariance()
        own = stats.multivariate_t(shape=covariance[at], df=freedom).logpdf(row[seen])
        kinds = special.logsumexp(of_kinds, b=self.kind_weights())
        return np.array([network, kinds, own]), of_kinds

    def log_density(self, row, network):
        return special.logsumexp(self.logs(row, network)[0] + np.log(self.density_weights()))

    def log_mass(self, row):
        """Return the log of the mass of the entity's Student's t further out than the row."""
        seen = ~np.isnan(row)
        if not seen.any():
            return 0.0
        covariance, freedom = self.own_covariance()
        square = row[seen] @ np.linalg.solve(covariance[np.ix_(seen, seen)], row[seen])
        return stats.f.logsf(square / seen.sum(), seen.sum(), freedom)

    def learn(self, row, network):
        logs, of_kinds = self.logs(row, network)
        weights = self.density_weights() * np.exp(logs - logs.max()) + 1e-12
        self.weights = weights / weights.sum()
        shares = self.kind_weights() * np.exp(of_kinds - of_kinds.max())
        covariance, _ = self.own_covariance()
        self.kinds = np.exp(-1 / 1000) * self.kinds + shares / shares.sum()
        if self.age >= 2:
            self.learn_products(row, covariance)
        self.age += 1

    def learn_products(self, row, covariance):
        seen = ~np.isnan(row)
        n = seen.sum()
        square = row[seen] @ np.linalg.solve(covariance[np.ix_(seen, seen)], row[seen])
        x, rest = given(np.zeros(self.d), covariance, row)
        x = np.clip(x, -5, 5)
        known = self.count > 2 * self.d
        weight = min(1.0, (n + 3 * np.sqrt(2 * n)) / square) if known else 1.0
        self.count = np.exp(-1 / 1000) * self.count + weight
        products = np.outer(x, x) + rest
        self.products += weight / self.count * (products - self.products)
