"""Learners that need few kernels, with which everything else can be compiled."""

# ruff: noqa: D102 - the protocols say what each method does

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray

from .density.components import Components, new_components
from .oslrau import OSLRAU

LOG_2_PI = float(np.log(2 * np.pi))


class Standing(NamedTuple):
    """An evaluation of m rows, with their log-density as the only measure."""

    measures: FloatArray

    @property
    def log_density(self) -> FloatArray:
        return self.measures[:, 0]

    @property
    def by_network(self) -> FloatArray:
        return self.measures

    def weighed(self, _: FloatArray) -> Self:
        return self


class StandIn:
    """Independent standard Gaussians, which learn nothing; a `Learner`."""

    n_records_ = 0
    memory: float | None = None
    shares = np.ones(1)

    def check_parameters(self) -> None: ...

    def partial_fit(self, X: ArrayLike, *, evaluation: Any = None) -> None:
        self.n_records_ += len(np.asarray(X))

    def evaluate(self, X: ArrayLike) -> Standing:
        return Standing(self.score_samples(X)[:, None])

    def score_samples(self, X: ArrayLike) -> FloatArray:
        return np.asarray(-np.nansum(self.given_others(X)[0], axis=1))

    def given_others(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        rows = np.asarray(X, np.float64)
        return (rows**2 + LOG_2_PI) / 2, np.zeros(rows.shape), np.ones(rows.shape)

    def conditional_quantiles(
        self, X: ArrayLike, levels: Sequence[float]
    ) -> tuple[FloatArray, FloatArray]:
        mean = np.nan_to_num(np.asarray(X, np.float64))
        return mean, np.stack([mean] * len(levels))

    def predictive(self, X: FloatArray, more: int = 0) -> Components:
        components = new_components(X.shape[1], len(X), 1 + more)
        components.n[np.isnan(X)] = 1
        components.parameters[:, :, 0] = [1.0, 0.0, 1.0]
        return components

    @property
    def established(self) -> Self:
        return self

    def weighed(self, _: FloatArray) -> Self:
        return self

    def untrained(self) -> Self:
        return type(self)()

    def to_bytes(self) -> bytes:
        return b"%d" % self.n_records_

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        found = cls()
        if data.isdigit():  # else the state is that of the learner it stands in for
            found.n_records_ = int(data)
        return found


class Beginner(OSLRAU):
    """The network with which learning begins: all kernels of `OSLRAU` but those that learn."""

    def _learn(self, *_: Any) -> None: ...
