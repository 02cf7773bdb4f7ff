"""p-values of scores against the recent stream, with a model of the tail."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .clusters import NONE, Clusters, clusters_below
from .ordered import excess_moments, ranks_between, replace_ordered

FloatArray = NDArray[np.float64]

RECENT = 8192
"""Scores that p-values are computed from: so many that eight are below a rate of 0.001, so few that
they follow the stream."""

FIRST = 2048
"""So many scores are kept before any is dropped. From then on, until there are ``RECENT``, one is
dropped for each two that come: p-values are those of the later half of a young stream, whose first
records the model did not know as well. With all scores, faults looked usual beside these."""

TAIL_SHARE = 0.1
"""Share of the recent scores, the lowest ones, that the tail is fitted to."""

FEWEST_IN_TAIL = 20
"""Fewest scores that a tail is fitted to."""

TRUSTED_RANK = 5
"""Rank among independent scores below which p-values are computed from the tail, which is then more
accurate. Where scores come in clusters, so many of these must be below."""

QUARTER = 4
"""Where there is no tail, scores below all recent ones are held against the lowest quarter."""


LOW_SHARE = 1 / 16
"""Share of the recent scores, the lowest ones, that may belong to unusual records."""

SMALLEST_P_VALUE = float(np.finfo(np.float64).tiny)
"""Smallest p-value, so that its logarithm is finite."""

LARGEST_SHAPE = 0.9
"""Largest shape of the tail: the fit needs a mean, which exists for shapes below 1."""

PRIOR_IN_TAIL = 10
"""Scores in the tail that speak for this shape before any are seen. Few scores do not tell how thin
a tail is: without them, p-values of young streams fell to 1e-90."""


class Tail(NamedTuple):
    """Generalised Pareto distribution of how far a score lies below ``threshold``."""

    threshold: float
    shape: float
    scale: float

    def survival(self, score: FloatArray) -> FloatArray:
        """Probability (m,) of a score this low or lower among those below the threshold."""
        excess = np.maximum(self.threshold - score, 0.0) / self.scale
        if abs(self.shape) < 1e-9:
            return np.exp(-excess)
        base = np.maximum(1.0 + self.shape * excess, 0.0)
        return np.asarray(base ** (-1.0 / self.shape), np.float64)


class LowScores(NamedTuple):
    """What the lowest scores tell: how they come in clusters, their tail, and where it begins."""

    clusters: Clusters
    tail: Tail | None
    trusted_rank: int


class RecentScores:
    """The last ``RECENT`` scores, or the later half of fewer.

    Attributes
    ----------
    recent
        The scores, oldest first: the whole state.
    ascending
        The same scores in ascending order.
    """

    def __init__(self) -> None:
        self.recent = np.empty(0)
        self.ascending = np.empty(0)

    def restore(self, recent: FloatArray) -> None:
        """Take up these scores (n,) instead, oldest first, none of them NaN."""
        self._set(recent, np.sort(recent))

    def update(self, score: FloatArray) -> None:
        """Add the scores (m,) of a learning batch, none of them NaN."""
        n = n_kept(len(self.recent), len(score))
        score = score[-n:]
        recent = np.concatenate([self.recent, score])
        gone, recent = np.split(recent, [len(recent) - n])
        self._set(recent, replace_ordered(self.ascending, np.sort(gone), np.sort(score)))

    def select(self, which: NDArray[np.bool_]) -> None:
        """Forget all scores except those where ``which`` (n,) is true."""
        self.restore(self.recent[which])

    def _set(self, recent: FloatArray, ascending: FloatArray) -> None:
        self.recent, self.ascending = recent, ascending


class Calibration(RecentScores):
    """How often the recent stream was at least as unlikely as a record.

    A score's p-value is its rank among the recent ones, interpolated between two of them. So no two
    scores share a p-value, and the p-values of a stationary stream are uniform. Below the lowest
    few it follows a generalised Pareto tail fitted to the lowest tenth (peaks over threshold).
    Where records depend on each other, low scores come in clusters; then the tail begins higher up,
    since a few excursions do not tell how low the next one goes.
    Changes in ``update`` and ``select`` alone, which the scorer calls at learning boundaries, so
    that p-values do not depend on how the stream was cut into blocks.

    Parameters
    ----------
    sequential
        Whether the scores are those of stretches. Then an excursion is unlike others before it,
        and the tail is as heavy as so few independent scores allow.
    """

    def __init__(self, *, sequential: bool = False) -> None:
        super().__init__()
        self.sequential = sequential

    @property
    def clusters(self) -> Clusters:
        """How the lowest tenth of the scores come in clusters."""
        return self._low.clusters

    @property
    def lowest_usual(self) -> float:
        """Lowest of the recent scores without the lowest ``LOW_SHARE`` of them."""
        n = len(self.ascending)
        return float(self.ascending[int(LOW_SHARE * n)]) if n > 0 else -np.inf

    def _set(self, recent: FloatArray, ascending: FloatArray) -> None:
        super()._set(recent, ascending)
        self.__dict__.pop("_low", None)

    @cached_property
    def _low(self) -> LowScores:
        """Worked out when a p-value is asked for, which may be rare."""
        n = n_in_tail(len(self.ascending))
        clusters = clusters_below(self.recent, float(self.ascending[n])) if n > 0 else NONE
        size = clusters.own_size
        tail = fit_tail(self.ascending, 1.0 / size if self.sequential else 1.0)
        trusted_rank = min(round(TRUSTED_RANK * size), max(TRUSTED_RANK, n // 2))
        return LowScores(clusters, tail, trusted_rank)

    def p_value(self, score: FloatArray) -> FloatArray:
        """Share (m,) of the recent scores, with the record itself, not above each score.

        NaN before the first update.
        """
        n = len(self.ascending)
        if n == 0:
            return np.full(len(score), np.nan)
        rank = ranks_between(self.ascending, score)
        beyond = rank < (1 if self._low.tail is None else self._low.trusted_rank)
        if beyond.any():
            rank[beyond] = self._rank_beyond(score[beyond])
        return np.asarray(np.maximum(rank / (n + 1.0), SMALLEST_P_VALUE), np.float64)

    def _rank_beyond(self, score: FloatArray) -> FloatArray:
        """Return ranks below the lowest scores, which fall towards 0.

        Few scores have no tail. Then ranks fall to one half at most, which keeps the order and
        raises no alarm that the number of scores does not justify.
        """
        _, tail, trusted_rank = self._low
        if tail is not None:
            anchor = self.ascending[trusted_rank - 1 : trusted_rank]
            share = tail.survival(score) / tail.survival(anchor)
            return np.asarray(trusted_rank * share, np.float64)
        lowest, n = self.ascending[0], len(self.ascending)
        spread = self.ascending[n // QUARTER] - lowest
        excess = (lowest - score) / spread if spread > 0.0 else np.zeros(len(score))
        return np.asarray(0.5 + 0.5 / (1.0 + excess), np.float64)


def n_kept(n: int, m: int) -> int:
    """Return how many of ``n`` scores and ``m`` more are kept."""
    beyond_first = n + m - max(n, FIRST)
    return min(n + m - max(beyond_first, 0) // 2, RECENT)


def n_in_tail(n: int) -> int:
    """Return how many of ``n`` scores a tail is fitted to, 0 if they are too few."""
    lowest = int(TAIL_SHARE * n)
    return lowest if lowest >= FEWEST_IN_TAIL else 0


def fit_tail(ascending: FloatArray, independent: float = 1.0) -> Tail | None:
    """Fit the lowest tenth of the scores by probability-weighted moments (Hosking and Wallis).

    None where there are too few, or where they do not differ. A shape below 0, a tail that ends,
    is taken for 0: there is always something less likely still. The shape is that of the scores, a
    share of which is ``independent``, and of ``PRIOR_IN_TAIL`` others.
    """
    n = n_in_tail(len(ascending))
    if n == 0:
        return None
    mean, weighted = excess_moments(ascending, n)
    if mean <= 0.0 or not math.isfinite(mean):
        return None
    found = min(max(2.0 - mean / (mean - 2.0 * weighted), 0.0), LARGEST_SHAPE)
    seen = n * independent
    shape = (seen * found + PRIOR_IN_TAIL * LARGEST_SHAPE) / (seen + PRIOR_IN_TAIL)
    return Tail(float(ascending[n]), shape, mean * (1.0 - shape))
