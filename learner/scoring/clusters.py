"""How scores below a threshold come in clusters, as on streams whose records depend on each other.

Where they do, few of the lowest scores are independent of each other: an excursion of a slow field
gives many of them. The extremal index is the inverse of a cluster's mean size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def share_of_independent(scores: FloatArray, threshold: float) -> float:
    """Return the share of the scores (n,), in time order, below ``threshold`` that are independent.

    In (0, 1]: the intervals estimator of the extremal index (Ferro and Segers 2003, equation 5); 1
    if fewer than three scores are below.
    """
    gap = np.diff(np.flatnonzero(scores < threshold))
    if len(gap) < 2:
        return 1.0
    if gap.max() <= 2:
        index = 2.0 * int(gap.sum()) ** 2 / (len(gap) * int((gap**2).sum()))
    else:
        squares = int(((gap - 1) * (gap - 2)).sum())
        index = 2.0 * int((gap - 1).sum()) ** 2 / (len(gap) * squares)
    return min(1.0, index)
