"""How scores below a threshold come in clusters, as on streams whose records depend on each other.

Where they do, few of the lowest scores are independent of each other: an excursion of a slow field
gives many of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FAULTS = 3
"""The largest clusters do not count, so many of them: they may be faults, after which the next one
would be no alarm."""

FEWEST = 3
"""Fewest scores that tell of clusters."""


class Clusters(NamedTuple):
    """How scores come in clusters.

    Attributes
    ----------
    mean_size
        Scores of a cluster on average: the inverse of the extremal index.
    own_size
        Scores of the cluster of a score, on average over the scores. So many scores are worth one
        independent score (Kish 1965). Without the largest clusters.
    """

    mean_size: float
    own_size: float


NONE = Clusters(1.0, 1.0)
"""Of independent scores."""


def clusters_below(scores: FloatArray, threshold: float) -> Clusters:
    """Return how the scores (n,), in time order, come in clusters below ``threshold``."""
    gap = np.diff(np.flatnonzero(scores < threshold))
    if len(gap) < FEWEST - 1:
        return NONE
    index = extremal_index(gap)
    return Clusters(1.0 / index, own_size(cluster_sizes(gap, index)))


def extremal_index(gap: IntArray) -> float:
    """Return the inverse of the mean size of clusters, in (0, 1], by the gaps between scores.

    The intervals estimator (Ferro and Segers 2003, equation 5).
    """
    if gap.max() <= 2:
        index = 2.0 * int(gap.sum()) ** 2 / (len(gap) * int((gap**2).sum()))
    else:
        squares = int(((gap - 1) * (gap - 2)).sum())
        index = 2.0 * int((gap - 1).sum()) ** 2 / (len(gap) * squares)
    return min(1.0, index)


def cluster_sizes(gap: IntArray, index: float) -> IntArray:
    """Return the sizes of clusters, which the longest gaps divide (Ferro and Segers 2003)."""
    n_cuts = math.ceil(index * (len(gap) + 1)) - 1
    if n_cuts == 0:
        return np.array([len(gap) + 1])
    shortest = np.partition(gap, len(gap) - n_cuts)[len(gap) - n_cuts]
    ends = np.append(np.flatnonzero(gap >= shortest), len(gap))
    return np.diff(ends, prepend=-1)


def own_size(sizes: IntArray) -> float:
    """Return how large a score's own cluster is on average, without the largest clusters."""
    if len(sizes) > 2 * FAULTS:
        sizes = np.sort(sizes)[:-FAULTS]
    return int((sizes**2).sum()) / int(sizes.sum())
