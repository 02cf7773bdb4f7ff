"""How far records are from recent ones: a measure without a model.

A usual record is near one of a few other records, whatever the shape of the usual ones: clusters,
curves, gaps. The measure is the mean distance to the nearest record of each of several small
subsamples (Pang, Ting and Albrecht, LeSiNN, 2015). Here the subsamples are dealt from a sample of
the last records, and are other ones after each learning batch. With fixed subsamples, a group of
usual records that happens to be in none of them would be flagged for as long as they last.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..errors import StateError
from ..vector.lanes import padded
from .nearest import fill_variances, mean_nearest
from .ranking import share_of_batch

FloatArray = NDArray[np.float64]

POOL = 1024
"""Most records in the sample of a stream."""

COMPARED_ROWS = 128
"""Most records of the sample that others are compared with at a time."""

STRIDE = 8
"""In the long run, one in this many records is sampled. So the sample represents the last 8,192
records, not only what goes on at the moment."""

_TOP_BITS = np.uint64(65 - STRIDE.bit_length())

GOLDEN = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio. Its multiples are spread evenly over the range of 64 bits, and so
are those of every third or every hundredth number. So records that come at regular intervals are
not always left out."""

SAMPLE = 16
"""Records of one subsample. With fewer, a group of anomalies is less often its own neighbour; with
more, gaps between usual records show better."""

LARGEST_DISTANCE = 1e9
"""Largest distance, so that it stays finite whatever the fields hold."""


class Neighbours:
    """A sample of a stream's last records, and distances from the nearest of a few of them.

    Changes in ``update`` alone, which the scorer calls at learning boundaries. A row's distance
    has the same bits whatever rows it is measured with.

    Attributes
    ----------
    rows
        Records (k, d), k <= POOL, of all so far or, in the long run, of the last POOL * STRIDE;
        oldest first.
    variance
        Of each field (d,), within batches, averaged over recent ones; 0 where nothing varied.
    n
        Records so far.
    """

    def __init__(self) -> None:
        self._set(np.empty((0, 0)), np.empty(0), 0)

    def restore(self, rows: FloatArray, variance: FloatArray, n: int) -> None:
        """Restore a state; StateError if it cannot be one."""
        most = POOL
        if stride(n) < STRIDE:  # else there are more records than could be gone through
            most = min(POOL, int(np.count_nonzero(is_sampled(0, n, stride(n)))))
        if rows.ndim != 2 or not min(n, 1) <= len(rows) <= most:
            raise StateError(f"state: expected at most {most} neighbours of {n} records")
        if variance.shape != rows.shape[1:]:
            raise StateError("state: expected a variance for each field of the neighbours")
        if np.isinf(rows).any() or not (np.isfinite(variance) & (variance >= 0)).all():
            raise StateError("state: expected finite neighbours, and variances of at least 0")
        self._set(rows, variance, n)

    def _set(self, rows: FloatArray, variance: FloatArray, n: int) -> None:
        self.rows, self.variance, self.n = rows, variance, n
        # a field that never varied counts nothing
        self._scale = np.zeros(len(variance))
        np.divide(1.0, np.sqrt(variance), out=self._scale, where=variance > 0)
        self._others = in_turn(rows, n) * self._scale
        self._complete = not np.isnan(self._others).any()

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
        mean_nearest(Z, self._others, max(1, len(self._others) // SAMPLE), complete, result)
        return np.minimum(result[0, :m], LARGEST_DISTANCE)

    def update(self, rows: FloatArray) -> None:
        """Add the usual rows (m, d) of a learning batch."""
        m = len(rows)
        if m == 0:
            return
        latest, earlier, n = np.empty(rows.shape[1]), self.variance, self.n + m
        fill_variances(rows, latest)
        if self.n == 0:
            self._set(rows[:0], latest, 0)
            earlier = latest
        share = share_of_batch(m, n)
        moved = np.where(latest > 0, earlier + share * (latest - earlier), earlier)
        recent = np.concatenate([self._thinned(n), rows[is_sampled(self.n, n, stride(n))]])
        self._set(recent[-POOL:], np.where(earlier > 0, moved, latest), n)

    def _thinned(self, n: int) -> FloatArray:
        """Return the rows that are still in the sample after ``n`` records."""
        before = stride(self.n)
        if stride(n) == before:
            return self.rows
        remaining = is_sampled(0, self.n, stride(n))[is_sampled(0, self.n, before)]
        return self.rows[remaining[-len(self.rows) :]]


def stride(n: int) -> int:
    """Return of how many records one is sampled after ``n`` records."""
    return min(STRIDE, 1 << max(0, (n - 1) // POOL).bit_length())


def is_sampled(start: int, stop: int, stride: int) -> NDArray[np.bool_]:
    """Return which of the records number ``start`` to ``stop`` of a stream are sampled."""
    turn = np.arange(start, stop, dtype=np.uint64) * np.uint64(GOLDEN) >> _TOP_BITS
    return turn < STRIDE // stride


def in_turn(rows: FloatArray, n: int) -> FloatArray:
    """Return up to COMPARED_ROWS of the rows (k, d) at regular intervals, others after each batch.

    ``n`` is the number of records so far.
    """
    turns = max(1, math.ceil(len(rows) / COMPARED_ROWS))
    return rows[((n * GOLDEN) % 2**64 * turns >> 64) :: turns]
