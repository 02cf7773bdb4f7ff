"""Records of many devices, one of which breaks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.datasets import Array

from .draws import Codes

DEVICES, FIELDS, BROKEN = 30, 3, 7
STUCK, DRIFT = 200, 1_000
"""Records of the broken device that the fault lasts."""


class Devices(NamedTuple):
    """Records ``x`` (n, d), the device of each ``keys`` (n,), and the rows of the fault."""

    x: Array
    keys: list[bytes]
    rows: Codes


def devices(seed: int, fault: str, n: int) -> Devices:
    """Draw devices with levels and scales of their own, whose fields depend on each other alike.

    A field of the broken one is stuck near its level, or drifts by ten deviations, or neither.
    """
    rng = np.random.default_rng([51, seed])
    who = rng.integers(DEVICES, size=n)
    level = 5 * rng.normal(size=(DEVICES, FIELDS))
    scale = rng.uniform(0.5, 2, (DEVICES, FIELDS))
    common = rng.normal(size=(n, FIELDS)) @ (0.5 * rng.normal(size=(FIELDS, FIELDS)) + np.eye(3)).T
    x = level[who] + scale[who] * common / common.std(axis=0)
    rows = np.flatnonzero((who == BROKEN) & (np.arange(n) >= n // 4))
    if fault == "stuck":
        rows = rows[:STUCK]
        x[rows, 1] = level[BROKEN, 1] + 0.3 * scale[BROKEN, 1]
    elif fault == "drift":
        rows = rows[:DRIFT]
        x[rows, 1] += 10 * scale[BROKEN, 1] * np.arange(DRIFT) / DRIFT
    return Devices(x, [b"device-%d" % device for device in who], rows)
