"""The last values of a stream, from which quantiles of any scale are exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Recent:
    """The last `size` values that were known."""

    __slots__ = ("_count", "_values")

    def __init__(self, size: int) -> None:
        self._values: NDArray[np.float64] = np.empty(size)
        self._count = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Take in values (m,), the oldest first; NaN counts for nothing."""
        size = len(self._values)
        known = values[~np.isnan(values)][-size:]
        self._values[(self._count + np.arange(len(known))) % size] = known
        self._count += len(known)

    def mean(self) -> float | None:
        """Return the mean, None where there is no value."""
        known = self._known()
        return float(known.mean()) if len(known) else None

    def quantiles(self, shares: Sequence[float]) -> dict[str, float]:
        """Return the quantiles by the names of their shares, none where there is no value."""
        known = self._known()
        if len(known) == 0:
            return {}
        found = np.quantile(known, shares).tolist()
        return dict(zip(map(str, shares), found, strict=True))

    def _known(self) -> NDArray[np.float64]:
        return self._values[: self._count]
