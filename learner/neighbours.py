"""How far records are from recent ones: a measure without a model.

A record among others like it is near one of any few of them, however the usual records are
spread: in clusters, along curves, around gaps. The mean distance to the nearest record of small
samples is that of Pang, Ting and Albrecht (LeSiNN, 2015), here with the last records dealt out to
samples by turns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._lanes import padded
from ._neighbours import mean_nearest
from .errors import StateError

FloatArray = NDArray[np.float64]

ROWS = 128
"""Records that others are held against, the last ones."""

SAMPLE = 16
"""Records of a sample. With fewer, a group of anomalies is less often its own neighbour; with
more, gaps between usual records are seen better."""

MEMORY = 4096
"""Records that the fields' variances are averaged over."""

FARTHEST = 1e9
"""Largest distance, so that it stays a number whatever the fields hold."""


class Neighbours:
    """The last records of a stream, and how far others are from the nearest of some of them.

    Changes in ``update`` alone, which the scorer calls at learning boundaries. A row's distance
    has the same bits whatever rows it is measured with.

    Attributes
    ----------
    rows
        The last records (k, d), k <= ROWS, oldest first.
    variance
        Of each field (d,), within batches, averaged over recent ones; 0 where nothing varied.
    n
        Records so far.
    """

    def __init__(self) -> None:
        self._set(np.empty((0, 0)), np.empty(0), 0)

    def restore(self, rows: FloatArray, variance: FloatArray, n: int) -> None:
        """Take up a state; StateError where it cannot be one."""
        if rows.ndim != 2 or len(rows) > min(n, ROWS) or variance.shape != rows.shape[1:]:
            raise StateError(f"state: expected at most {ROWS} neighbours, and their variances")
        if np.isinf(rows).any() or not (np.isfinite(variance) & (variance >= 0)).all():
            raise StateError("state: expected finite neighbours, and variances of at least 0")
        self._set(rows, variance, n)

    def _set(self, rows: FloatArray, variance: FloatArray, n: int) -> None:
        self.rows, self.variance, self.n = rows, variance, n
        # a field that never varied counts nothing
        self._scale = np.zeros(len(variance))
        np.divide(1.0, np.sqrt(variance), out=self._scale, where=variance > 0)
        self._others = rows * self._scale
        self._complete = not np.isnan(rows).any()

    def distance(self, rows: FloatArray) -> FloatArray:
        """Return the mean distance (m,) of the ``rows`` (m, d) to the nearest of each sample.

        In the fields' standard deviations, summed. A missing value counts as one of them. NaN
        before there are others.
        """
        m, d = rows.shape
        if self.n == 0:
            return np.full(m, np.nan)
        Z, result = np.zeros((d, padded(max(m, 2)))), np.empty((1, padded(max(m, 2))))
        np.multiply(rows.T, self._scale[:, None], out=Z[:, :m])
        complete = self._complete and not np.isnan(rows).any()
        mean_nearest(Z, self._others, max(1, len(self.rows) // SAMPLE), complete, result)
        return np.minimum(result[0, :m], FARTHEST)

    def update(self, rows: FloatArray) -> None:
        """Take in the usual rows (m, d) of a learning batch."""
        m = len(rows)
        if m == 0:
            return
        n, latest = self.n + m, variances(rows)
        if self.n == 0:
            self._set(rows[-ROWS:], latest, n)
            return
        share, earlier = min(1.0, max(2.0 * m / n, m / MEMORY)), self.variance
        moved = np.where(latest > 0, earlier + share * (latest - earlier), earlier)
        recent = np.concatenate([self.rows, rows])[-ROWS:]
        self._set(recent, np.where(earlier > 0, moved, latest), n)


def variances(rows: FloatArray) -> FloatArray:
    """Variance (d,) of the observed values of each column."""
    observed = ~np.isnan(rows)
    n = np.maximum(np.count_nonzero(observed, axis=0), 1)
    values = np.where(observed, rows, 0.0)
    with np.errstate(over="ignore"):
        gaps = np.where(observed, rows - values.sum(axis=0) / n, 0.0)
        variance = (gaps * gaps).sum(axis=0) / n
    return np.asarray(np.minimum(variance, np.finfo(np.float64).max), np.float64)
