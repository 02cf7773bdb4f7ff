"""The last values of a stream, for exact quantiles on any scale."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Window:
    """The last `size` values."""

    __slots__ = ("_count", "_parts", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._parts: deque[NDArray[np.float64]] = deque()
        self._count = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Take in values (m,), the oldest first, which nobody changes any more."""
        self._parts.append(values)
        self._count += len(values)
        while self._count - len(self._parts[0]) >= self._size:
            self._count -= len(self._parts.popleft())

    def mean(self) -> float | None:
        """Return the mean of those that are known, None where none is."""
        known = self._known()
        return float(known.mean()) if len(known) else None

    def quantiles(self, shares: Sequence[float]) -> dict[str, float]:
        """Return the quantiles by the names of their shares, none where no value is known."""
        known = self._known()
        if len(known) == 0:
            return {}
        found = np.quantile(known, shares).tolist()
        return dict(zip(map(str, shares), found, strict=True))

    def _known(self) -> NDArray[np.float64]:
        values = np.concatenate([np.empty(0), *self._parts])[-self._size :]
        known: NDArray[np.float64] = values[~np.isnan(values)]
        return known
