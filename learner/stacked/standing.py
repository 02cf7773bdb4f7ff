"""Strengths of the background that stand for others which no longer bring anything."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .network import StackedNetwork
from .weights import MEMORY, gained

LEAST_GAIN = 0.005
"""Nats that strengths must bring the latest records on average to be worth their time."""


def spare_strengths(network: StackedNetwork, history: NDArray[np.float64]) -> None:
    """Let the heaviest strength of a wide background stand for those that bring nothing.

    With many records, all strengths are nearly the same. Each takes the time of all other parts of
    wide records, and little where one covariance is enough. ``history`` (n, E) holds the latest
    log-densities of the experts, each before the record was learned. Call this just before the
    Gaussians change.
    """
    background = network.background
    if len(background.blocks) == 1 or len(history) < MEMORY:
        return
    first = network.own_background.start
    experts = {s: first + background.experts_of(s) for s in np.unique(background.standing).tolist()}
    heaviest = max(experts, key=lambda s: float(network.weight[experts[s]].sum()))
    spared = np.empty(0, np.int64)
    for strength, own in experts.items():
        without = np.concatenate([spared, own])
        if strength != heaviest and gained(network.weight, history, without).mean() < LEAST_GAIN:
            background.standing[background.standing == strength] = heaviest
            spared = without
