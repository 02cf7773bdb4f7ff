"""Counts values in the buckets of a Prometheus histogram."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Arrays, or single values, that are counted together: counting each alone would cost several times
# as much.
_AT_ONCE = 16


class Distribution:
    """A cumulative histogram: the number of values up to each bound, and their sum.

    Parameters
    ----------
    bounds
        Ascending upper bounds of the buckets, without infinity.
    """

    __slots__ = ("_bounds", "_counts", "_single", "_sum", "_waiting")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = np.array([*bounds, np.inf])
        self._counts: NDArray[np.int64] = np.zeros(len(self._bounds), dtype=np.int64)
        self._sum = 0.0
        self._waiting: list[NDArray[np.float64]] = []
        self._single: list[float] = []

    def observe(self, values: NDArray[np.float64]) -> None:
        """Count values (m,), ignoring NaN; the caller must not change the array later."""
        self._waiting.append(values)
        if len(self._waiting) >= _AT_ONCE:
            self._count_waiting()

    def observe_one(self, value: float) -> None:
        """Count one value."""
        self._single.append(value)
        if len(self._single) >= _AT_ONCE:
            self._count_waiting()

    def cumulated(self) -> tuple[list[tuple[str, float]], float]:
        """Return the bounds with the number of values up to each, and the sum of all values."""
        self._count_waiting()
        names = [*map(str, self._bounds[:-1].tolist()), "+Inf"]
        return list(zip(names, self._counts.tolist(), strict=True)), self._sum

    def _count_waiting(self) -> None:
        values = np.sort(np.concatenate([*self._waiting, self._single]))  # NaN last
        self._waiting.clear()
        self._single.clear()
        # Looking up few bounds among many sorted values is much faster than the reverse.
        counts = np.searchsorted(values, self._bounds, side="right")
        self._counts += counts
        self._sum += float(values[: counts[-1]].sum())
