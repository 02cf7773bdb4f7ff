"""RealNVP (Dinh and others, 2017) by zuko: in one pass, and offline.

As in the paper, two hidden layers of equal width give about as many parameters as the network has.
Offline, training goes on until the loss on held-out rows stops falling. Steps are Adam's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
import zuko
from torch import Tensor

from benchmarks.crossval import Fit
from benchmarks.datasets import Array, Setting

from .online import OnePass
from .sizes import Opaque, Size
from .training import FEWEST_ROWS, n_parameters, step, train, width_of

COUPLINGS = 4
ONLINE_STEP_SIZE = 1e-2
"""As in the paper; offline, smaller steps take as many epochs as they need."""

SCORED = 10_000
"""Rows that are scored at a time."""


class RealNVP:
    """Couplings with two hidden layers, trained by the mean negative log-likelihood."""

    def __init__(self, d: int, size: Size) -> None:
        torch.manual_seed(size.seed)
        # a coupling maps one half of the variables to shifts and scales of the other
        width = width_of(size.parameters // COUPLINGS, 3 * d // 2 + 2)
        flow = zuko.flows.RealNVP(d, transforms=COUPLINGS, hidden_features=(width, width))
        self.flow = flow.double()
        self._optimiser = torch.optim.Adam(self.flow.parameters(), ONLINE_STEP_SIZE)

    def learn(self, rows: Array) -> None:
        step(self._optimiser, self.loss(torch.from_numpy(rows)))

    def loss(self, rows: Tensor) -> Tensor:
        mean: Tensor = self.flow().log_prob(rows).mean()
        return -mean

    def density(self) -> Opaque:
        return Opaque(self.log_density, n_parameters(self.flow))

    def log_density(self, X: Array) -> Array:
        parts = torch.from_numpy(np.ascontiguousarray(X)).split(SCORED)
        with torch.no_grad():
            return torch.cat([self.flow().log_prob(part) for part in parts]).numpy()


def online(size: Size) -> OnePass:
    """Take one step for each mini-batch."""
    return OnePass(lambda first: RealNVP(first.shape[1], size), FEWEST_ROWS)


def offline(size: Size) -> Fit:
    """Train until the loss on held-out rows stops falling."""

    def fit(folds: Iterable[Array], setting: Setting) -> Opaque:
        X = np.concatenate(list(folds))
        model = RealNVP(X.shape[1], size)
        train(model.flow, model.loss, X, size.seed)
        return model.density()

    return fit


METHODS: dict[str, Callable[[Size], Fit]] = {"RealNVP, online": online, "RealNVP, offline": offline}
