"""Preparation of the compiled kernels before records flow."""

from __future__ import annotations

import numpy as np

from .oslrau import OSLRAU
from .transforms import Transforms


def compile_kernels() -> None:
    """Compile every kernel, or load it from its cache, by running each once on a tiny model."""
    rows = np.random.default_rng(0).normal(size=(64, 3))
    rows[:, 1] += rows[:, 0]
    rows[5, 2] = np.nan
    model = OSLRAU(min_count=8, max_leaf_vars=2)
    model.partial_fit(rows, batch_size=16)
    model.score_samples(rows, variance_floor=1e-3)
    model.contributions(rows)
    transforms = Transforms({0: "asinh"})
    transforms.log_slope(transforms.undo(transforms.apply(rows)))
