"""The hyper-parameters of the algorithm as its kernels take them."""

from __future__ import annotations

from typing import NamedTuple

CLEAR_WIN = 1e-9
"""Nats by which a child must be better than the ones before it to win a row. Without it rounding
would decide between components that are equal, as they are at the start, and still are after a
first mini-batch that the units were learned from."""


class LearningRule(NamedTuple):
    """The scalars that the kernels need; ``OSLRAU`` documents each."""

    grow: bool
    corr_threshold: float
    min_count: float
    max_leaf_vars: int
    merges_per_batch: int
    max_nodes: int
    memory: float
    variance_floor: float
