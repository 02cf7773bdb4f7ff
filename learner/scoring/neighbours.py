"""How far records are from recent ones: a measure without a model.

A record among others like it is near some of any few of them, however the usual records are
spread: in clusters, along curves, around gaps. The mean distance to the nearest record of small
samples is that of Pang, Ting and Albrecht (LeSiNN, 2015). Here it is the fourth nearest that
counts, so that a small group of anomalies is not its own neighbour. The samples are taken from the
last records by turns, and changed after each learning batch: with a sample that stays, a rare group
that it lacks would be flagged all the time.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, Mask
from faust_oslrau.learner.state_schema import LARGEST, Entry, read
from faust_oslrau.learner.stored import Places
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import (
    WIDTH,
    absolute,
    aligned_stack,
    choose,
    load,
    spread,
    store,
)
from faust_oslrau.learner.vector.math import larger, smaller

from .ranking import share_of_batch

POOL = 1024
"""Records kept at the most."""

ROWS = 128
"""Records of these that others are held against at a time at the most."""

STRIDE = 8
"""Of so many records one is kept in the long run, so that they stand for the last 8,192: the last
ones alone would know nothing but what goes on at the moment."""

_TOP_BITS = np.uint64(65 - STRIDE.bit_length())

GOLDEN = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio. Its multiples fall evenly into the range of 64 bits, also those of
every third or every hundredth number: so no record that comes by turns is always left out."""

BLOCK = 32
"""Rows of a sample, whose fourth nearest counts: a group of anomalies is near its own only from an
eighth of the records on. The fourth nearest of more rows would be nearer, so all samples have as
many: else the p-values of a whole batch would be too low when samples get smaller."""

_NEIGHBOURS = {"neighbours": Entry(("k", "d"), nan=True), "variance": Entry(("d",), 0.0)}

UNKNOWN = 1.0
"""What a field counts whose value is missing on either side."""

FARTHEST = 4.0
"""Deviations that a field counts at the most: beyond, it is far, and one field must not decide."""

RANK = 4
"""The neighbour whose distance counts, from the nearest. A group of anomalies has to be an eighth
of the records to be its own fourth neighbour among 32."""

ROUNDING = 1e-12
"""Deviation, as a share of the largest value, below which a field does not vary."""


class Neighbours:
    """Some of a stream's last records, and how far others are from near ones of a few of them.

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

    def state(self) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        return {"neighbours": self.rows, "variance": self.variance}

    def restore(self, arrays: Arrays, n: int) -> None:
        """Take up a state of ``n`` records; StateError where it cannot be one."""
        most = POOL
        if stride(n) < STRIDE:  # else there are more records than could be gone through
            most = min(POOL, int(np.count_nonzero(is_kept(0, n, stride(n)))))
        rows, variance = read(arrays, _NEIGHBOURS, k=range(min(n, 1), most + 1))
        self._set(rows, variance, n)

    def _set(self, rows: FloatArray, variance: FloatArray, n: int) -> None:
        self.rows, self.variance, self.n = rows, variance, n
        # a field that never varied counts nothing
        self._scale = np.zeros(len(variance))
        np.divide(1.0, np.sqrt(variance), out=self._scale, where=variance > 0)
        self._others = in_turn(rows, n) * self._scale
        self._complete = not np.isnan(self._others).any()

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, which the records so far lack: each is `UNKNOWN` further."""
        rows, variance = places.widened(self.rows, 1), places.widened(self.variance, 0, 0.0)
        self._set(rows, variance, self.n)

    def distance(self, rows: FloatArray) -> FloatArray:
        """Return the mean distance (m,) of ``rows`` (m, d) to the fourth nearest of each sample.

        In the fields' standard deviations, of each four at the most, summed. A missing value
        counts as one of them. NaN before there are others.
        """
        if self.n == 0:
            return np.full(len(rows), np.nan)
        result, n_blocks = np.empty(len(rows)), max(1, len(self._others) // BLOCK)
        mean_near(rows, self._scale, self._others, n_blocks, self._complete, result)
        return result

    def update(self, rows: FloatArray) -> None:
        """Take in the usual rows (m, d) of a learning batch."""
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
        new = rows.compress(is_kept(self.n, n, stride(n)), axis=0)  # faster than an index
        recent = np.concatenate([self._thinned(n), new])
        self._set(recent[-POOL:], np.where(earlier > 0, moved, latest), n)

    def _thinned(self, n: int) -> FloatArray:
        """Return the rows that are still kept after so many records."""
        before = stride(self.n)
        if stride(n) == before:
            return self.rows
        kept = is_kept(0, self.n, stride(n))[is_kept(0, self.n, before)]
        return self.rows[kept[-len(self.rows) :]]


def stride(n: int) -> int:
    """Tell of how many records one is kept after ``n``."""
    return min(STRIDE, 1 << max(0, (n - 1) // POOL).bit_length())


def is_kept(start: int, stop: int, stride: int) -> Mask:
    """Tell which records of a stream, from number ``start`` on, are kept."""
    turn = np.arange(start, stop, dtype=np.uint64) * np.uint64(GOLDEN) >> _TOP_BITS
    return turn < STRIDE // stride


def in_turn(rows: FloatArray, n: int) -> FloatArray:
    """Choose whole samples of the rows (k, d), ROWS at the most, other ones after each batch.

    They are spread evenly over ``rows``; fewer than a sample are all chosen. ``n`` is the number of
    records so far.
    """
    k = len(rows)
    chosen = k if k < BLOCK else min(ROWS, k // BLOCK * BLOCK)
    start = (n * GOLDEN) % 2**64 * k >> 64
    return rows.take((start + np.arange(chosen) * k) // max(1, chosen), axis=0)


@kernel
def mean_near(
    rows: Array, scale: Array, others: Array, n_blocks: int, others_complete: bool, result: Array
) -> None:
    """Fill ``result`` (m,) with mean distances to the fourth nearest row of each block.

    The ``others`` (k, d), which are scaled, are dealt out to the blocks by turns; of a block of
    fewer than four the farthest row counts. Distances from the ``rows`` (m, d) times ``scale`` (d,)
    are sums over the fields. The bits are the same whether some values are missing or none is.
    """
    aligned_stack()
    m, d = rows.shape
    Z, found = np.zeros((d, WIDTH)), np.empty((1, WIDTH))
    rank = min(RANK, len(others) // n_blocks)
    # as if so many rows were nearer than any
    start = [-np.inf if i < RANK - rank else np.inf for i in range(RANK)]
    for r in range(0, m, WIDTH):
        n, total, complete = min(WIDTH, m - r), spread(0.0), others_complete
        for i in range(n):
            for v in range(d):
                Z[v, i] = rows[r + i, v] * scale[v]
                complete &= Z[v, i] == Z[v, i]
        for first in range(n_blocks):
            a, b, c, e = spread(start[0]), spread(start[1]), spread(start[2]), spread(start[3])
            for other in range(first, len(others), n_blocks):
                distance = spread(0.0)
                if complete:
                    for v in range(d):
                        gap = absolute(others[other, v] - load(Z, v, 0))
                        distance = distance + smaller(gap, FARTHEST)
                else:
                    for v in range(d):
                        gap = absolute(others[other, v] - load(Z, v, 0))
                        distance = distance + choose(gap == gap, smaller(gap, FARTHEST), UNKNOWN)
                e = smaller(e, larger(c, distance))
                c = smaller(c, larger(b, distance))
                b = smaller(b, larger(a, distance))
                a = smaller(a, distance)
            total = total + e
        store(found, 0, 0, total / float(n_blocks))
        for i in range(n):
            result[r + i] = found[0, i]


@kernel
def fill_variances(rows: Array, result: Array) -> None:
    """Fill ``result`` (d,) with the variance of the observed values of each column (m, d)."""
    m, d = rows.shape
    n, largest, mean, squares = np.zeros((4, d))
    for r in range(m):
        for v in range(d):
            n[v] += rows[r, v] == rows[r, v]
            largest[v] = larger(abs(rows[r, v]), largest[v])
    # in units of the largest value no square overflows or underflows
    for r in range(m):
        for v in range(d):
            value = rows[r, v] / largest[v]
            mean[v] += choose(value == value, value, 0.0)
    for v in range(d):
        mean[v] /= n[v]
    for r in range(m):
        for v in range(d):
            gap = rows[r, v] / largest[v] - mean[v]
            squares[v] += choose(gap == gap, gap * gap, 0.0)
    for v in range(d):
        result[v] = 0.0
        if squares[v] >= n[v] * ROUNDING**2 and largest[v] > 0.0:
            result[v] = min(squares[v] / n[v] * largest[v] * largest[v], LARGEST)
