"""Stacked restricted Boltzmann machines: Gaussian units below two layers of binary ones.

Each machine is trained by contrastive divergence, the upper one on samples of the layer below. The
log-likelihood is an estimate by importance samples from the lower machine's posterior; the upper
machine's normalising constant is one by annealed importance sampling (Salakhutdinov and Murray,
2008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from benchmarks.crossval import Fit
from benchmarks.datasets import Array, Setting

from .sizes import Size
from .training import n_parameters, step, width_of

STEPS = 4_000
BATCH = 100
STEP_SIZE = 1e-2
"""Of Adam; chosen on held-out rows of training folds, as 1e-3 had learned little by then."""

SAMPLES = 50
"""Samples of the hidden layer for each row."""

TEMPERATURES, CHAINS = 1_000, 100
SCORED = 2_000
"""Rows that are scored at a time."""


class Machine(nn.Module):
    """Binary hidden units (h,) over visible ones (v,), which are binary or Gaussian."""

    def __init__(self, v: int, h: int, *, gaussian: bool) -> None:
        super().__init__()
        self.weights = nn.Parameter(0.01 * torch.randn(v, h, dtype=torch.float64))
        self.visible = nn.Parameter(torch.zeros(v, dtype=torch.float64))
        self.hidden = nn.Parameter(torch.zeros(h, dtype=torch.float64))
        self.log_variance = nn.Parameter(torch.zeros(v if gaussian else 0, dtype=torch.float64))
        self._gaussian = gaussian

    def hidden_logits(self, V: Tensor) -> Tensor:
        scaled = V / self.log_variance.exp() if self._gaussian else V
        return self.hidden + scaled @ self.weights

    def visible_means(self, H: Tensor) -> Tensor:
        return self.visible + H @ self.weights.T

    def log_unnormalised(self, V: Tensor) -> Tensor:
        """Log-density (m,) of rows, with the hidden units summed out, up to a constant."""
        if self._gaussian:
            squared = (V - self.visible) ** 2 / self.log_variance.exp()
            own = -0.5 * squared.sum(dim=1)
        else:
            own = V @ self.visible
        return own + softplus(self.hidden_logits(V)).sum(dim=1)

    def resample(self, V: Tensor) -> Tensor:
        """Take one step of Gibbs sampling."""
        means = self.visible_means(torch.bernoulli(torch.sigmoid(self.hidden_logits(V))))
        if self._gaussian:
            return means + torch.randn_like(means) * (0.5 * self.log_variance).exp()
        return torch.bernoulli(torch.sigmoid(means))


def contrast(machine: Machine, rows: Callable[[], Tensor]) -> None:
    """Train by contrastive divergence with one step of Gibbs sampling."""
    optimiser = torch.optim.Adam(machine.parameters(), STEP_SIZE)
    for _ in range(STEPS):
        positive = rows()
        with torch.no_grad():
            negative = machine.resample(positive)
        loss = machine.log_unnormalised(negative).mean() - machine.log_unnormalised(positive).mean()
        step(optimiser, loss)


def log_partition(machine: Machine) -> float:
    """Estimate the log of a binary machine's normalising constant, from independent units on."""
    v, h = machine.weights.shape
    V = torch.bernoulli(torch.sigmoid(machine.visible).expand(CHAINS, v))
    log_weight = torch.zeros(CHAINS, dtype=torch.float64)
    levels = torch.linspace(0.0, 1.0, TEMPERATURES + 1, dtype=torch.float64)
    for before, after in pairwise(levels):
        logits = machine.hidden_logits(V)
        log_weight += (softplus(after * logits) - softplus(before * logits)).sum(dim=1)
        H = torch.bernoulli(torch.sigmoid(after * logits))
        V = torch.bernoulli(torch.sigmoid(machine.visible + after * (H @ machine.weights.T)))
    start = softplus(machine.visible).sum() + h * np.log(2.0)
    return float(start + torch.logsumexp(log_weight, 0) - np.log(CHAINS))


class Stack:
    """A Gaussian machine whose hidden layer has the distribution of a binary one."""

    n_nodes_ = 0

    def __init__(self, lower: Machine, upper: Machine) -> None:
        self._lower, self._upper = lower, upper
        self.n_parameters_ = n_parameters(lower) + n_parameters(upper) - len(lower.hidden)
        with torch.no_grad():
            self._log_partition = log_partition(upper)

    def score_samples(self, X: Array, *, variance_floor: float | None = None) -> Array:
        torch.manual_seed(0)
        parts = torch.from_numpy(np.ascontiguousarray(X)).split(SCORED)
        with torch.no_grad():
            scores = [self._score(part, variance_floor or 0.0) for part in parts]
            return torch.cat(scores).numpy()

    def _score(self, V: Tensor, floor: float) -> Tensor:
        logits = self._lower.hidden_logits(V)
        variance = self._lower.log_variance.exp() + floor
        drawn = []
        for _ in range(SAMPLES):
            H = torch.bernoulli(torch.sigmoid(logits))
            apart = V - self._lower.visible_means(H)
            given = -0.5 * (apart**2 / variance + torch.log(2 * np.pi * variance)).sum(dim=1)
            posterior = binary_cross_entropy_with_logits(logits, H, reduction="none").sum(dim=1)
            drawn.append(given + self._upper.log_unnormalised(H) + posterior)
        mean: Tensor = torch.logsumexp(torch.stack(drawn), 0) - np.log(SAMPLES)
        return mean - self._log_partition


def stacked_machines(size: Size) -> Fit:
    """Train two machines with hidden layers of equal width and about as many parameters."""

    def fit(folds: Iterable[Array], setting: Setting) -> Stack:
        X = torch.from_numpy(np.concatenate(list(folds)))
        torch.manual_seed(size.seed)
        width = width_of(size.parameters, X.shape[1] + 2)
        lower = Machine(X.shape[1], width, gaussian=True)
        upper = Machine(width, width, gaussian=False)
        contrast(lower, lambda: X[torch.randint(len(X), (BATCH,))])

        def hidden() -> Tensor:
            logits = lower.hidden_logits(X[torch.randint(len(X), (BATCH,))])
            return torch.bernoulli(torch.sigmoid(logits)).detach()

        contrast(upper, hidden)
        return Stack(lower, upper)

    return fit


METHODS = {"Boltzmann machines": stacked_machines}
