"""Values counted in the buckets of a Prometheus histogram."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Distribution:
    """How many values lay in each bucket, and their sum.

    Parameters
    ----------
    bounds
        Upper bounds of the buckets, ascending, without the infinite one.
    """

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = np.asarray(bounds, dtype=np.float64)
        self._counts: NDArray[np.int64] = np.zeros(len(bounds) + 1, dtype=np.int64)
        self._sum = 0.0

    def observe(self, values: NDArray[np.float64]) -> None:
        """Count values (m,); NaN counts for nothing."""
        known = values[~np.isnan(values)]
        # A value on a bound belongs below it, as Prometheus has it.
        buckets = np.searchsorted(self._bounds, known, side="left")
        self._counts += np.bincount(buckets, minlength=len(self._counts))
        self._sum += float(known.sum())

    def observe_one(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def cumulated(self) -> tuple[list[tuple[str, float]], float]:
        """Return the bounds with the number of values up to each, and the sum of all values."""
        names = [*map(str, self._bounds.tolist()), "+Inf"]
        return list(zip(names, np.cumsum(self._counts).tolist(), strict=True)), self._sum
