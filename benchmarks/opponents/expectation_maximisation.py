"""Online expectation maximisation of a structure's parameters (Cappé and Moulines, 2009)."""

from __future__ import annotations

import numpy as np

from benchmarks.datasets import Array
from benchmarks.mixtures import RIDGE

from .structure import Structure, TreeDensity, whitening_of

WARM_UP = 20
"""Records that are collected before the parameters first move (Cappé and Moulines)."""

STEP_EXPONENT = 0.6
"""The step size is the number of mini-batches to this power, inverted (Cappé and Moulines)."""


class OnlineEM:
    """Running averages of a structure's sufficient statistics.

    Leaves start at ``means`` (L, s) with covariances of 1, sums with equal weights.
    """

    def __init__(self, structure: Structure, means: Array) -> None:
        self._structure = structure
        s = means.shape[1]
        weights = structure.weights(np.ones(len(structure.kind)))
        self._counts = structure.shares(weights, np.zeros((1, len(weights))))[0]
        count = self._counts[structure.leaves]
        self._sums = count[:, None] * means
        self._squares = count[:, None, None] * (np.eye(s) + means[:, :, None] * means[:, None, :])
        self._batches = self._rows = 0
        self._current = self._model()

    def learn(self, rows: Array) -> None:
        shares = self._posterior(rows) / len(rows)
        points, of_leaf = self._structure.points(rows), shares[:, self._structure.leaves]
        self._batches += 1
        self._rows += len(rows)
        # counted from 2, as a first step of 1 would forget the start before it is replaced
        step = (1.0 + self._batches) ** -STEP_EXPONENT
        weighted = of_leaf[:, :, None] * points
        self._counts += step * (shares.sum(axis=0) - self._counts)
        self._sums += step * (weighted.sum(axis=0) - self._sums)
        squares = np.einsum("mli,mlj->lij", weighted, points)
        self._squares += step * (squares - self._squares)
        if self._rows >= WARM_UP:
            self._current = self._model()

    def density(self) -> TreeDensity:
        return self._model()

    def _posterior(self, rows: Array) -> Array:
        values = self._current.values(rows, whitening_of(self._current.covariances))
        return self._structure.shares(self._current.weights, values)

    def _model(self) -> TreeDensity:
        count = self._counts[self._structure.leaves]
        means = self._sums / count[:, None]
        squares = self._squares / count[:, None, None]
        covariances = squares - means[:, :, None] * means[:, None, :]
        ridge = RIDGE * np.eye(means.shape[1])
        weights = self._structure.weights(self._counts)
        return TreeDensity(self._structure, weights, means, covariances + ridge)
