"""Gaussian kernels of one bandwidth around records, or around a generator's samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import KernelDensity

from benchmarks.datasets import Array, Setting

MOST_KERNELS = 10_000
"""As many as the samples that the paper's Parzen windows have."""

MOST_VALIDATED = 500
"""Rows that choose the bandwidth."""

BANDWIDTHS = np.geomspace(0.01, 2.0, 16)

TOLERANCE = 1e-4
"""Relative error of a density that the search tree may make."""


@dataclass(frozen=True)
class Parzen:
    """Kernels (n, d) of a bandwidth: a mixture of n Gaussians with equal weights."""

    kernels: Array
    bandwidth: float

    @property
    def n_nodes_(self) -> int:
        return 1 + len(self.kernels)

    @property
    def n_parameters_(self) -> int:
        return self.kernels.size + 1

    def score_samples(self, X: Array, *, variance_floor: float | None = None) -> Array:
        width = float(np.sqrt(self.bandwidth**2 + (variance_floor or 0.0)))
        density = KernelDensity(bandwidth=width, rtol=TOLERANCE).fit(self.kernels)
        return np.asarray(density.score_samples(X))


def parzen(kernels: Array, validation: Array) -> Parzen:
    """Choose the bandwidth by the likelihood of rows that are none of the kernels."""
    candidates = [Parzen(kernels, float(bandwidth)) for bandwidth in BANDWIDTHS]
    return max(candidates, key=lambda one: one.score_samples(validation).mean())


def kernel_density(folds: Iterable[Array], setting: Setting) -> Parzen:
    """Take random records as kernels, and others to choose the bandwidth, then all as kernels."""
    X = np.random.default_rng(0).permutation(np.concatenate(list(folds)))[:MOST_KERNELS]
    held_out = min(MOST_VALIDATED, len(X) // 5)
    return Parzen(X, parzen(X[held_out:], X[:held_out]).bandwidth)


METHODS = {"kernel density": lambda size: kernel_density}
