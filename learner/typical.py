"""How far values usually lie from the middle, whatever a few of them are."""

from __future__ import annotations

import numpy as np

from .arrays import FloatArray
from .density.gaussian_kernels import TYPICAL
from .state_schema import LARGEST_LEARNED

FARTHEST = 4.0
"""Typical distances as which larger ones count, where values are averaged."""


def typical_distances(gaps: FloatArray) -> FloatArray:
    """Return the deviations (d,) of Gaussians whose distances have the medians of ``gaps`` (m, d).

    Where most gaps are 0, the root of the mean square; 0 if nothing differs. NaN = missing.
    """
    distance = np.minimum(np.abs(np.ascontiguousarray(gaps.T)), LARGEST_LEARNED)
    n = np.count_nonzero(~np.isnan(distance), axis=1)
    ordered = np.sort(distance)  # NaN last
    places = np.stack([np.maximum(n - 1, 0) // 2, np.minimum(n // 2, len(gaps) - 1)], axis=1)
    middle = np.take_along_axis(ordered, places, axis=1).mean(axis=1) / TYPICAL
    squares = np.nansum(distance**2, axis=1) / np.maximum(n, 1)
    return np.asarray(np.where(middle > 0.0, middle, np.sqrt(squares)), np.float64)
