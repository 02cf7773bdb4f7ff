"""Gaussian mixtures as baselines: one component, scikit-learn offline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from .datasets import Array, Setting

N_COMPONENTS = 10
"""Fixed beforehand, the same for every data set."""

RIDGE = 1e-6
"""On the diagonal of every covariance, as scikit-learn's mixture does."""


@dataclass(frozen=True)
class Mixture:
    """Gaussians with weights (K,), means (K, d) and covariances (K, d, d)."""

    weights: Array
    means: Array
    covariances: Array

    @property
    def n_nodes_(self) -> int:
        return 1 if len(self.weights) == 1 else 1 + len(self.weights)

    @property
    def n_parameters_(self) -> int:
        k, d = self.means.shape
        return k - 1 + k * (d + d * (d + 1) // 2)

    def joint_log_density(self, X: Array) -> Array:
        """Log of weight times density (m, K) of each row and component."""
        return np.log(self.weights) + np.column_stack(
            [
                log_gaussian(X, *gaussian)
                for gaussian in zip(self.means, self.covariances, strict=True)
            ]
        )

    def score_samples(self, X: Array, *, variance_floor: float | None = None) -> Array:
        ridge = (RIDGE if variance_floor is None else variance_floor) * np.eye(X.shape[1])
        floored = Mixture(self.weights, self.means, self.covariances + ridge)
        return logsumexp(floored.joint_log_density(X), axis=1)


def log_gaussian(X: Array, mean: Array, covariance: Array) -> Array:
    factor = np.linalg.cholesky(covariance)
    whitened = solve_triangular(factor, (X - mean).T, lower=True)
    log_norm = 0.5 * len(mean) * np.log(2 * np.pi) + np.log(np.diag(factor)).sum()
    return -log_norm - 0.5 * (whitened**2).sum(axis=0)


def single_gaussian(folds: Iterable[Array], setting: Setting) -> Mixture:
    """Mean and covariance of all training rows, which a stream gives as well."""
    X = np.concatenate(list(folds))
    return Mixture(np.ones(1), X.mean(axis=0)[None], np.cov(X.T, ddof=0)[None])


def offline_mixture(folds: Iterable[Array], setting: Setting) -> Mixture:
    """Fit scikit-learn's mixture, with all rows in memory and as many passes as it takes."""
    model = GaussianMixture(N_COMPONENTS, reg_covar=RIDGE, random_state=0, max_iter=200)
    model.fit(np.concatenate(list(folds)))
    return Mixture(model.weights_, model.means_, model.covariances_)
