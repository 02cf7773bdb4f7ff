"""One Gaussian by River's online precision matrix."""

from __future__ import annotations

import numpy as np
from river.covariance import EmpiricalPrecision

from benchmarks.datasets import Array
from benchmarks.mixtures import Mixture

from .online import OnePass


class PrecisionGaussian:
    """River's precision matrix beside a running mean; it starts at the identity."""

    def __init__(self, first: Array) -> None:
        self._precision = EmpiricalPrecision()
        self._total = np.zeros(first.shape[1])
        self._n = 0

    def learn(self, rows: Array) -> None:
        for row in rows.tolist():
            self._precision.update(dict(enumerate(row)))
        self._total += rows.sum(axis=0)
        self._n += len(rows)

    def density(self) -> Mixture:
        fields = range(len(self._total))
        matrix = np.array([[self._precision[i, j] for j in fields] for i in fields])
        return Mixture(np.ones(1), (self._total / self._n)[None], np.linalg.inv(matrix)[None])


METHODS = {"precision matrix": lambda size: OnePass(PrecisionGaussian)}
