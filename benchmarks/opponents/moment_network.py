"""Generative moment matching network (Li and others, 2015) with Parzen windows.

A network maps uniform noise to records. It minimises the maximum mean discrepancy between records
and samples. Its density is that of Gaussian kernels around 10,000 samples, whose bandwidth has the
greatest likelihood of rows that were held out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.crossval import Fit
from benchmarks.datasets import Array, Setting

from .parzen import MOST_KERNELS, MOST_VALIDATED, Parzen, parzen
from .sizes import Size
from .training import HELD_OUT, n_parameters, step, width_of

STEPS = 1_000
STEP_SIZE = 1e-2
"""Of Adam; chosen on held-out rows of training folds, as 1e-3 had learned little by then."""

BATCH = 200
"""Records, and samples, of a step."""

POWERS = (1, 4, 16, 64)
"""Of the widest kernel, whose squared width is the mean squared distance of two records."""


@dataclass(frozen=True)
class Generated:
    """Kernels around samples; the generator's parameters count, and the bandwidth."""

    windows: Parzen
    n_parameters_: int
    n_nodes_: int = 0

    def score_samples(self, X: Array, *, variance_floor: float | None = None) -> Array:
        return self.windows.score_samples(X, variance_floor=variance_floor)


def moment_network(size: Size) -> Fit:
    """Train a fully connected network of about as many parameters, with two hidden layers."""

    def fit(folds: Iterable[Array], setting: Setting) -> Generated:
        X = np.random.default_rng(size.seed).permutation(np.concatenate(list(folds)))
        held_out, rows = np.split(X, [int(HELD_OUT * len(X))])
        torch.manual_seed(size.seed)
        d = X.shape[1]
        generator = network(d, width_of(size.parameters, 2 * d + 2))
        optimiser = torch.optim.Adam(generator.parameters(), STEP_SIZE)
        records = torch.from_numpy(rows)
        for _ in range(STEPS):
            drawn = records[torch.randint(len(records), (BATCH,))]
            step(optimiser, discrepancy(drawn, samples(generator, BATCH, d)))
        with torch.no_grad():
            kernels = samples(generator, MOST_KERNELS, d).numpy()
        return Generated(parzen(kernels, held_out[:MOST_VALIDATED]), n_parameters(generator) + 1)

    return fit


def network(d: int, width: int) -> nn.Sequential:
    layers = (nn.Linear(d, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    return nn.Sequential(*layers, nn.Linear(width, d)).double()


def samples(generator: nn.Module, m: int, d: int) -> Tensor:
    drawn: Tensor = generator(2.0 * torch.rand(m, d, dtype=torch.float64) - 1.0)
    return drawn


def discrepancy(X: Tensor, Y: Tensor) -> Tensor:
    """Return the square root of the squared maximum mean discrepancy of two sets of rows."""
    scale = distances(X, X).mean()

    def similarity(A: Tensor, B: Tensor) -> Tensor:
        widest = torch.exp(-distances(A, B) / (2.0 * scale))
        return torch.stack([(widest**power).mean() for power in POWERS]).sum()

    squared = similarity(X, X) + similarity(Y, Y) - 2.0 * similarity(X, Y)
    return torch.sqrt(squared.clamp_min(1e-12))


def distances(A: Tensor, B: Tensor) -> Tensor:
    """Squared distances (m, n) of rows."""
    apart = (A**2).sum(dim=1)[:, None] + (B**2).sum(dim=1) - 2.0 * A @ B.T
    return apart.clamp_min(0.0)


METHODS = {"moment matching network": moment_network}
