"""An Einsum network (Peharz and others, 2020) by SPFlow, trained until held-out rows get worse."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

import numpy as np
import torch
from spflow.modules.leaves.normal import Normal
from spflow.zoo.einet import Einet
from torch import Tensor

from benchmarks.crossval import Fit
from benchmarks.datasets import Array, Setting

from .sizes import Size
from .training import n_parameters, train

STEP_SIZE = 3e-3
REPETITIONS = 5
MOST_DEPTH = 3
SCORED = 2_000
"""Rows that are scored at a time."""


class EinsumNetwork:
    """A trained network with Gaussian leaves."""

    n_nodes_ = 0

    def __init__(self, network: Einet) -> None:
        self._network = network
        self.n_parameters_ = n_parameters(network)

    def score_samples(self, X: Array, *, variance_floor: float | None = None) -> Array:
        network = deepcopy(self._network)
        for leaf in network.leaf_modules:
            assert isinstance(leaf, Normal)
            leaf.scale = leaf.scale.detach().clamp_min((variance_floor or 0.0) ** 0.5)
        parts = torch.from_numpy(np.ascontiguousarray(X)).split(SCORED)
        with torch.no_grad():
            return torch.cat([log_likelihood(network, part) for part in parts]).numpy()


def einsum_network(size: Size) -> Fit:
    """Train the widest network that has no more parameters, or the narrowest."""

    def fit(folds: Iterable[Array], setting: Setting) -> EinsumNetwork:
        X = np.concatenate(list(folds))
        network = widest(X.shape[1], size)
        train(network, lambda rows: -log_likelihood(network, rows).mean(), X, size.seed, STEP_SIZE)
        return EinsumNetwork(network)

    return fit


def widest(d: int, size: Size) -> Einet:
    """Double the leaves and sums of each region as long as the parameters allow."""
    found, width = network_of(d, 2, size.seed), 4
    while n_parameters(wider := network_of(d, width, size.seed)) <= size.parameters:
        found, width = wider, 2 * width
    return found


def network_of(d: int, width: int, seed: int) -> Einet:
    torch.manual_seed(seed)
    leaf = Normal(list(range(d)), out_channels=width, num_repetitions=REPETITIONS)
    depth = min(MOST_DEPTH, d.bit_length() - 1)
    network = Einet(
        [leaf], num_sums=width, num_leaves=width, depth=depth,
        num_repetitions=REPETITIONS, layer_type="einsum",
    )  # fmt: skip
    return network.double()


def log_likelihood(network: Einet, rows: Tensor) -> Tensor:
    return network.log_likelihood(rows).flatten()


METHODS = {"Einsum network": einsum_network}
