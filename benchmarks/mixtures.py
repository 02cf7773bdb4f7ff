"""Gaussian mixtures as baselines: one component, online EM, scikit-learn offline."""

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

FIRST_ROWS = 100
"""Rows among which online EM finds its first means."""

WARM_UP = 20
"""Records that online EM collects before it first moves its parameters (Cappé and Moulines)."""

STEP_EXPONENT = 0.6
"""The step size is the number of mini-batches to this power, inverted (Cappé and Moulines)."""


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


def online_mixture(folds: Iterable[Array], setting: Setting) -> Mixture:
    """Learn by online EM, in one pass and the same mini-batches as oSLRAU."""
    model: OnlineEM | None = None
    for rows in folds:
        model = model or OnlineEM(rows[:FIRST_ROWS])
        for start in range(0, len(rows), setting.batch_size):
            model.update(rows[start : start + setting.batch_size])
    if model is None:
        raise ValueError("folds: expected at least one")
    return model.mixture()


class OnlineEM:
    """Running averages of the sufficient statistics of a mixture (Cappé and Moulines, 2009).

    The means start at some of the first rows, the covariances at 1.
    """

    def __init__(self, first: Array) -> None:
        k, d = N_COMPONENTS, first.shape[1]
        means = first[np.random.default_rng(0).choice(len(first), k, replace=len(first) < k)]
        self._counts = np.full(k, 1.0 / k)
        self._sums = means / k
        self._squares = (np.eye(d) + means[:, :, None] * means[:, None, :]) / k
        self._batches = self._rows = 0
        self._current = self.mixture()

    def update(self, X: Array) -> None:
        joint = self._current.joint_log_density(X)
        share = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)) / len(X)
        self._batches += 1
        self._rows += len(X)
        # counted from 2, as a first step of 1 would forget the start before it is replaced
        step = (1.0 + self._batches) ** -STEP_EXPONENT
        self._counts += step * (share.sum(axis=0) - self._counts)
        self._sums += step * (share.T @ X - self._sums)
        self._squares += step * ((share.T[:, :, None] * X).transpose(0, 2, 1) @ X - self._squares)
        if self._rows >= WARM_UP:
            self._current = self.mixture()

    def mixture(self) -> Mixture:
        means = self._sums / self._counts[:, None]
        squares = self._squares / self._counts[:, None, None]
        covariances = squares - means[:, :, None] * means[:, None, :]
        ridge = RIDGE * np.eye(means.shape[1])
        return Mixture(self._counts / self._counts.sum(), means, covariances + ridge)
