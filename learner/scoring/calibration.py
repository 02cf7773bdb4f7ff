"""p-values: which share of some recent scores is at least as low as a score."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.vector.compiler import Array, kernel


@kernel
def replace_ordered(ascending: Array, old: Array, new: Array) -> Array:
    """Return ``ascending`` without ``old``, all of which it holds, and with ``new``, in order.

    All three are in ascending order and without NaN. One pass, where a sort would take several.
    """
    result = np.empty(len(ascending) + len(new))
    n, next_old, next_new = 0, 0, 0
    for x in ascending:
        if next_old < len(old) and x == old[next_old]:
            next_old += 1
            continue
        while next_new < len(new) and new[next_new] < x:
            result[n] = new[next_new]
            n += 1
            next_new += 1
        result[n] = x
        n += 1
    for i in range(next_new, len(new)):
        result[n] = new[i]
        n += 1
    return result[:n]


@kernel
def ranks(ascending: Array, x: Array) -> tuple[Array, Array]:
    """Count the ordered numbers below each ``x`` (m,), and those not above it.

    All binary searches take a step in turn, so that their memory accesses overlap.
    """
    below, not_above = np.zeros((2, len(x)), np.int64)
    n = len(ascending)
    while n > 0:
        half = (n + 1) // 2
        for i in range(len(x)):
            below[i] += half * (ascending[below[i] + half - 1] < x[i])
            not_above[i] += half * (ascending[not_above[i] + half - 1] <= x[i])
        n -= half
    return below, not_above


@kernel
def ranks_between(ascending: Array, x: Array) -> Array:
    """Count the ordered numbers not above each ``x`` (m,), and how far it is to the next one.

    That is a share, from 0 at one number to 1 at the next; also 0 below all, and 1 above all.
    """
    n, (_, not_above) = len(ascending), ranks(ascending, x)
    result = np.empty(len(x))
    for i in range(len(x)):
        at = not_above[i]
        result[i] = at
        if at == n:
            result[i] += x[i] > ascending[n - 1]
        elif at > 0:
            lower, upper = ascending[at - 1], ascending[at]
            result[i] += (x[i] - lower) / (upper - lower)
    return result


@kernel
def excess_moments(ascending: Array, n: int) -> tuple[float, float]:
    """Mean of how far the ``n`` lowest lie below the next, and mean of that times their ranks.

    Ranks are shares, (i + 0.35) / n of the i-th lowest.
    """
    total, weighted = 0.0, 0.0
    for i in range(n):
        excess = ascending[n] - ascending[i]
        total += excess
        weighted += (i + 0.35) / n * excess
    return total / n, weighted / n


FEWEST = 1024
"""Scores from which on there is a tail: of what is seen in one record of 200, fewer scores may hold
too few for it to be usual."""

TAIL_SHARE = 0.1
"""Share of the scores, the lowest ones, that the tail is fitted to."""

TRIMMED = 4
"""The lowest scores that the tail is not fitted to, so many: a few faults among the scores must not
make the next one look usual."""

LARGEST_SHAPE = 0.9
"""Largest shape of the tail: the fit needs a mean, which exists for shapes below 1."""

PRIOR_IN_TAIL = 10
"""Scores in the tail that speak for this shape before any are seen."""

SMALLEST_P_VALUE = float(np.finfo(np.float64).tiny)
"""Smallest p-value, so that its logarithm is finite."""


class Tail(NamedTuple):
    """Generalised Pareto distribution of how far a score lies below ``threshold``."""

    threshold: float
    shape: float
    scale: float

    def log_survival(self, score: FloatArray) -> FloatArray:
        """Log-probability (m,) of a score this low or lower among those below the threshold."""
        excess = np.maximum(self.threshold - score, 0.0) / self.scale
        return np.asarray(-np.log1p(self.shape * excess) / self.shape, np.float64)

    def score_at(self, log_share: FloatArray) -> FloatArray:
        """Return the scores (m,) below which these shares of the scores below the threshold lie."""
        excess = np.expm1(-self.shape * log_share) / self.shape
        return np.asarray(self.threshold - self.scale * excess, np.float64)


class Calibration:
    """Scores in ascending order (n,), and the tail that goes on below them.

    A score's p-value is its rank, interpolated between two scores, over n + 1. So no two scores
    share a p-value unless they are equal, and the p-values of exchangeable records are uniform.
    Below all of the scores it falls as a generalised Pareto tail fitted to the lowest tenth (peaks
    over threshold); where they are too few for a tail, to half a rank at most.
    """

    def __init__(self, ascending: FloatArray) -> None:
        self.ascending = ascending
        self.tail = fit_tail(ascending)

    def p_value(self, score: FloatArray) -> FloatArray:
        """Share (m,) of the scores, with the record itself, not above each ``score`` (m,).

        NaN where there are no scores.
        """
        n = len(self.ascending)
        if n == 0:
            return np.full(len(score), np.nan)
        rank = ranks_between(self.ascending, score)
        if rank.min() < 1.0:
            below = rank < 1.0
            rank[below] = self._rank_below(score[below])
        return np.asarray(np.maximum(rank / (n + 1.0), SMALLEST_P_VALUE), np.float64)

    def score_at(self, p_value: FloatArray) -> FloatArray:
        """Return scores (m,) with these p-values; below all scores, without a tail, the lowest.

        Infinite above all scores, and where there are none.
        """
        n = len(self.ascending)
        if n == 0:
            return np.full(len(p_value), np.inf)
        rank = p_value * (n + 1.0)
        result = np.interp(rank, np.arange(1, n + 1), self.ascending, right=np.inf)
        if self.tail is not None:
            below = rank < 1.0
            log_share = self.tail.log_survival(self.ascending[:1]) + np.log(rank[below])
            result[below] = self.tail.score_at(log_share)
        return result

    def lower_bound(self, share: float) -> float:
        """Return the score below which, by the tail, this share of the records lies.

        -inf without a tail.
        """
        return (
            -math.inf
            if self.tail is None
            else float(self.tail.score_at(np.log(share / TAIL_SHARE)))
        )

    def _rank_below(self, score: FloatArray) -> FloatArray:
        """Return ranks (m,) of scores below all others, from 1 at the lowest of these downwards."""
        lowest = self.ascending[:1]
        if self.tail is not None:
            beyond = self.tail.log_survival(score) - self.tail.log_survival(lowest)
            return np.asarray(np.exp(beyond), np.float64)
        spread = self.ascending[len(self.ascending) // 4] - lowest  # of the lowest quarter
        excess = (lowest - score) / spread if spread > 0.0 else np.zeros(len(score))
        return np.asarray(0.5 + 0.5 / (1.0 + excess), np.float64)


def fit_tail(ascending: FloatArray) -> Tail | None:
    """Fit the lowest tenth of the scores by probability-weighted moments (Hosking and Wallis 1987).

    Without the very lowest. None where there are too few, or where they do not differ. The shape is
    that of these scores and of ``PRIOR_IN_TAIL`` others.
    """
    if len(ascending) < FEWEST:
        return None
    n = int(TAIL_SHARE * len(ascending))
    mean, weighted = excess_moments(ascending[TRIMMED:], n)
    if mean <= 0.0 or not math.isfinite(mean):
        return None
    found = min(max(2.0 - mean / (mean - 2.0 * weighted), 0.0), LARGEST_SHAPE)
    shape = (n * found + PRIOR_IN_TAIL * LARGEST_SHAPE) / (n + PRIOR_IN_TAIL)
    return Tail(float(ascending[TRIMMED + n]), shape, mean * (1.0 - shape))
