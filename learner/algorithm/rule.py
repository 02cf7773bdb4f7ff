"""The hyper-parameters of the algorithm, as its kernels take them."""

from __future__ import annotations

from typing import NamedTuple

CLEAR_WIN = 1e-9
"""Nats by which a child must be better than the children before it to get a row. Without this
margin, rounding would decide between equal components. Components are equal at the start, and
still equal after a first mini-batch that the units were learned from."""


class LearningRule(NamedTuple):
    """Scalar hyper-parameters; ``OSLRAU`` documents each."""

    grow: bool
    corr_threshold: float
    min_count: float
    max_leaf_vars: int
    merges_per_batch: int
    max_nodes: int
    memory: float
    variance_floor: float
