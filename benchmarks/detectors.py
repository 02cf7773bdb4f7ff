"""Detectors that score a stream record by record, or batch by batch, before they learn it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from river.anomaly import HalfSpaceTrees
from river.preprocessing import MinMaxScaler
from sklearn.ensemble import IsolationForest

from faust_oslrau.learner import OSLRAU, StreamScorer

from .datasets import Array
from .mixtures import log_gaussian

FIRST_BATCH = 16
BATCH = 256
"""All but River's trees learn at the boundaries of `StreamScorer`: 16, 48, 112, 240, 496, ..."""

RIDGE = 1e-6
"""On the diagonal of covariances, in units of the fields' variances."""

WINDOW = 2_048
"""Records that the isolation forest is fitted to, the last ones."""

FROZEN_AFTER = 1_008
"""Records that the frozen forest is fitted to, the first ones."""


class Detector(Protocol):
    """Learns batches; scores rows (m, d) with high = anomalous."""

    def learn(self, rows: Array) -> None: ...

    def score(self, rows: Array) -> Array: ...


class RunningGaussian:
    """Mean and covariance of all records so far; ``diagonal`` leaves correlations out."""

    def __init__(self, *, diagonal: bool) -> None:
        self._diagonal = diagonal
        self._n = 0
        self._mean: Array
        self._scatter: Array

    def learn(self, rows: Array) -> None:
        mean, m = rows.mean(axis=0), len(rows)
        scatter = (rows - mean).T @ (rows - mean)
        if self._n == 0:
            self._mean, self._scatter = mean, scatter
        else:
            apart = mean - self._mean
            share = self._n * m / (self._n + m)
            self._mean = self._mean + apart * m / (self._n + m)
            self._scatter = self._scatter + scatter + share * np.outer(apart, apart)
        self._n += m

    @property
    def scale(self) -> Array:
        """Deviation (d,) of each field, 1 where it is constant."""
        variance = self._scatter.diagonal() / self._n
        return np.asarray(np.sqrt(np.where(variance > 0, variance, 1.0)))

    def score(self, rows: Array) -> Array:
        scale = self.scale
        correlation = self._scatter / self._n / np.outer(scale, scale)
        if self._diagonal:
            correlation = np.diag(correlation.diagonal())
        Z = (rows - self._mean) / scale
        return -log_gaussian(Z, np.zeros(len(scale)), correlation + RIDGE * np.eye(len(scale)))


class Forest:
    """scikit-learn's IsolationForest, fitted to the last window whenever half of it is new."""

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._recent = np.empty((0, 0))
        self._new = 0
        self._forest: IsolationForest | None = None

    def learn(self, rows: Array) -> None:
        self._recent = np.concatenate([self._recent.reshape(-1, rows.shape[1]), rows])[
            -self._window :
        ]
        self._new += len(rows)
        if self._new >= len(self._recent) / 2:
            self._forest = IsolationForest(random_state=0).fit(self._recent)
            self._new = 0

    def score(self, rows: Array) -> Array:
        if self._forest is None:
            return np.zeros(len(rows))
        return np.asarray(-self._forest.score_samples(rows), np.float64)


class FrozenForest:
    """The same, fitted to all records so far until there are enough, and never again."""

    def __init__(self) -> None:
        self._forest = Forest(window=FROZEN_AFTER)
        self._left = FROZEN_AFTER

    def learn(self, rows: Array) -> None:
        if self._left > 0:
            self._forest.learn(rows)
            self._left -= len(rows)

    def score(self, rows: Array) -> Array:
        return self._forest.score(rows)


class Density:
    """A density learned from all records, without the guard of `StreamScorer`."""

    def __init__(self, model: OSLRAU) -> None:
        self._model = model

    def learn(self, rows: Array) -> None:
        self._model.partial_fit(rows)

    def score(self, rows: Array) -> Array:
        return -self._model.score_samples(rows)


def prequential(detector: Detector, x: Array) -> Array:
    """Score each record (n,) by what was learned before its batch; NaN in the first batch."""
    score = np.full(len(x), np.nan)
    for start, stop in boundaries(len(x)):
        if start > 0:
            score[start:stop] = detector.score(x[start:stop])
        detector.learn(x[start:stop])
    return score


def boundaries(n: int) -> Iterator[tuple[int, int]]:
    """Give the first and last place of each learning batch."""
    start, size = 0, FIRST_BATCH
    while start < n:
        yield start, min(start + size, n)
        start, size = start + size, min(2 * size, BATCH)


def half_space_trees(x: Array) -> Array:
    """Score each record (n,) with River's trees, on fields scaled to [0, 1] as they need."""
    scaler, trees = MinMaxScaler(), HalfSpaceTrees(seed=0)
    score = np.empty(len(x))
    for i, row in enumerate(x.tolist()):
        record = dict(enumerate(row))
        scaler.learn_one(record)
        scaled = scaler.transform_one(record)
        score[i] = trees.score_one(scaled)
        trees.learn_one(scaled)
    return score


def stream_scorer(x: Array) -> tuple[Array, Array]:
    """Score each record (n,) as the product does: minus log-likelihoods, minus p-values."""
    block = StreamScorer(OSLRAU(), BATCH).process(x)
    return -block.log_likelihood, -block.p_value
