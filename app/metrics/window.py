"""A sliding window of a stream's last values, for exact quantiles on any scale."""

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
        """Append values (m,), the oldest first; the caller must not change the array later."""
        self._parts.append(values)
        self._count += len(values)
        while self._count - len(self._parts[0]) >= self._size:
            self._count -= len(self._parts.popleft())

    def quantiles(self, shares: Sequence[float]) -> dict[str, float]:
        """Return the quantiles without NaN, by the text of their shares; empty without values."""
        values = self._values()
        if len(values) == 0:
            return {}
        quantiles = np.quantile(values, shares).tolist()
        return dict(zip(map(str, shares), quantiles, strict=True))

    def _values(self) -> NDArray[np.float64]:
        window = np.concatenate([np.empty(0), *self._parts])[-self._size :]
        values: NDArray[np.float64] = window[~np.isnan(window)]
        return values
