"""oSLRAU's own grown network as one of the experts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.oslrau import OSLRAU
from faust_oslrau.learner.queries import inference

FloatArray = NDArray[np.float64]

BATCH = 256
"""Mini-batch in which the records of the warm-up are learned again."""


class Tree:
    """A network that oSLRAU grows, in the units of the stacked network.

    Attributes
    ----------
    learner
        The learner, without units of its own.
    """

    def __init__(self, learner: OSLRAU) -> None:
        self.learner = learner

    @classmethod
    def grown(cls, Z: FloatArray, max_nodes: int, memory: float) -> Tree:
        """Learn the columns of ``Z`` (d, m) from the beginning; ``memory`` may be infinite."""
        remembered = memory if math.isfinite(memory) else None
        return cls(OSLRAU(max_nodes=max_nodes, memory=remembered, standardize=False)).regrown(Z)

    def regrown(self, Z: FloatArray) -> Tree:
        """Return a tree with the same parameters that has learned the columns of ``Z`` (d, m)."""
        learner = OSLRAU(**self.learner.get_params())
        return type(self)(learner.partial_fit(Z.T, batch_size=BATCH))

    @classmethod
    def from_bytes(cls, data: bytes, d: int) -> Tree:
        """Read what ``learner.to_bytes`` wrote; StateError where it does not fit."""
        learner = OSLRAU.from_bytes(data)
        if learner.standardize or learner.n_records_ == 0 or learner.network_.n_variables != d:
            raise StateError(f"stacked network: expected a tree over {d} variables, without units")
        return cls(learner)

    def log_density(self, Z: FloatArray, floor: FloatArray | float = 0.0) -> FloatArray:
        """Log-density (m,) of the columns of ``Z``; the largest of several floors counts."""
        network, least = self.learner.network_, float(np.max(floor))
        if least > self.learner.variance_floor:
            network = network.with_variance_floor(least)
        return network.log_density(Z)

    def learn(self, Z: FloatArray) -> None:
        """Learn the columns of ``Z`` (d, m) as one mini-batch."""
        self.learner.partial_fit(Z.T)

    def given_others(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log-density of the other variables, and moments given them, (d, m) each."""
        return inference.density_of_others(self.learner.network_, Z)

    def moments(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d) given what is observed of ``z`` (d,)."""
        mean, covariance = inference.moments(self.learner.network_, z)
        missing = np.isnan(z)
        return np.where(missing, mean, z), np.where(np.outer(missing, missing), covariance, 0.0)

    def sample(self, n: int, rng: np.random.Generator, z: FloatArray) -> FloatArray:
        """Draw ``n`` rows (n, d) given what is observed of ``z`` (d,)."""
        return inference.sample(self.learner.network_, n, rng, z)
