"""Gradient descent until the loss on held-out rows stops falling."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from math import sqrt

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.datasets import Array

from .sizes import MOST_HELD_OUT, MOST_SEEN

HELD_OUT = 0.1
"""Share of the training rows that says when to stop."""

PATIENCE = 5
"""Epochs without a smaller loss on them before training stops."""

STEP_SIZE = 1e-3
FEWEST_ROWS, MOST_ROWS = 100, 1_500
"""Of a mini-batch, as in the paper: a hundredth of the rows in between."""

Loss = Callable[[Tensor], Tensor]

torch.set_num_threads(1)  # as all others have one core


def train(module: nn.Module, loss: Loss, X: Array, seed: int, step_size: float = STEP_SIZE) -> None:
    """Minimise the mean loss by Adam; the parameters become those of the best epoch."""
    rows = torch.from_numpy(np.random.default_rng(seed).permutation(X))
    held_out, rows = rows.tensor_split([min(int(HELD_OUT * len(rows)), MOST_HELD_OUT)])
    batch, generator = batch_size(len(rows)), torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(module.parameters(), step_size)
    best, kept, waited, seen = np.inf, deepcopy(module.state_dict()), 0, 0
    while waited < PATIENCE and seen < MOST_SEEN:
        for part in rows[torch.randperm(len(rows), generator=generator)].split(batch):
            step(optimiser, loss(part))
            seen += len(part)
        found = mean_loss(loss, held_out)
        waited += 1
        if found < best:
            best, kept, waited = found, deepcopy(module.state_dict()), 0
    module.load_state_dict(kept)


def step(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def mean_loss(loss: Loss, rows: Tensor) -> float:
    with torch.no_grad():
        return float(loss(rows))


def batch_size(n: int) -> int:
    return min(max(n // 100, FEWEST_ROWS), MOST_ROWS)


def n_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def width_of(parameters: int, linear: int) -> int:
    """Return the h, at least 2, with ``h² + linear h`` nearest to a number of parameters."""
    root = sqrt(linear**2 + 4 * parameters)
    return max(2, round((root - linear) / 2))
