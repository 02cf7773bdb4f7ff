"""Stretches: small deviations that persist, which no single record shows.

A running mean of scores over the last records is unusual if it is low, as after a slow shift or a
lost correlation; or high, as with a stuck value or a variance that fell: records that are too usual
for too long. Several lengths count, as a short stretch shows a fault sooner and a long one shows a
smaller fault.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import InvalidParameterError, StateError
from faust_oslrau.learner.scoring.block import StretchScores
from faust_oslrau.learner.scoring.calibration import Calibration
from faust_oslrau.learner.scoring.ranking import share_of_batch
from faust_oslrau.learner.scoring.recent_records import compare_again
from faust_oslrau.learner.state import record_count
from faust_oslrau.learner.vector.compiler import Array, kernel

from .stretch_alarms import LONGEST, StretchAlarms

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

MOST_LENGTHS = 4
"""Most lengths of stretches."""

DEEPEST = -8.0
"""Scores below it count as this one: a single record must not make a stretch unusual."""

FULL = 0.85
"""Share of a stretch's weight from which on its mean is known: after about as many records."""

YOUNG = 4096
"""Records up to which high means do not count: scores rise while a model learns."""

AFTER_REFIT = 2048
"""Records that seem to be behind after a measure was fitted anew. Where a stream changes steadily,
all later scores are then higher than the ones before. So high means do not count until there are
``YOUNG`` again, and levels follow sooner. With 1,024 and 3,072, more streams raised alarms."""

LASTING = 0.01
"""P-value of the stretches during a fault that lasts."""

LENGTHS_OF_FAULT = 2
"""How many times as long as the longest stretch a fault lasts at least. Usual stretches that are as
unusual by chance last about as long as one stretch. They must count, or alarms become more."""

CLUSTERS_OF_FAULT = 10
"""How many times as long as a usual cluster of unusual stretches a fault lasts at least: where
fields move slowly, clusters are long."""


class Stretches:
    """How unusual the scores of the last records are together, for each slot.

    The means change with each record. What is usual changes in ``update`` and ``measure_anew``
    alone, which the scorer calls at learning boundaries.

    Parameters
    ----------
    lengths
        Records of the stretches. A mean weighs scores by exp(-2 age / length), which varies as much
        as a plain mean over that length.

    Attributes
    ----------
    alarms
        Which stretches are alarms.
    pending, pending_runs
        Means (m, k) of the rows since the last boundary, NaN where unknown; and their slots and how
        many stretches in a row were unusual in it, up to this one (m, 2).
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        valid = 0 < len(lengths) <= MOST_LENGTHS and all(2 <= n <= LONGEST for n in lengths)
        if not valid or len(set(lengths)) < len(lengths):
            raise InvalidParameterError(
                f"stretches: expected 1 to {MOST_LENGTHS} different lengths from 2 to {LONGEST}"
            )
        self.lengths = tuple(lengths)
        self.alarms = StretchAlarms()
        self.pending = np.empty((0, len(lengths)))
        self.pending_runs = np.empty((0, 2), np.int64)
        self._keep = np.exp(-2.0 / np.array(lengths))
        self._means = np.zeros((0, len(lengths), 2))
        self._runs = np.zeros(0, np.int64)
        self._usual = Usual.unknown(len(lengths))
        self._calibration = Calibration(sequential=True)
        self._now: Calibration | None = None

    def take(self, scores: FloatArray, slots: IntArray, fresh: Mask) -> StretchScores:
        """Add the scores (m,) of the next rows to their slots (m,), and judge the stretches.

        ``fresh`` (m,) says which rows begin anew in their slot.
        """
        held, needed = len(self._means), int(slots.max(initial=-1)) + 1
        if held < needed:
            more = max(needed, 2 * held) - held
            self._means = np.concatenate([self._means, np.zeros((more, len(self.lengths), 2))])
            self._runs = np.append(self._runs, np.zeros(more, np.int64))
        means = np.empty((len(scores), len(self.lengths)))
        add_scores(scores, slots, fresh, self._keep, self._means, means)
        self.pending = np.concatenate([self.pending, means])
        score, column = self._usual.score(means)
        p_value = self._p_value(means, score)
        runs = np.empty((len(scores), 2), np.int64)
        add_runs(p_value <= LASTING, slots, fresh, self._runs, runs)
        self.pending_runs = np.concatenate([self.pending_runs, runs])
        return StretchScores(p_value, np.array(self.lengths)[column])

    def _p_value(self, means: FloatArray, score: FloatArray) -> FloatArray:
        """Return the p-values (m,) of means (m, k) that have these scores (m,)."""
        p_value = self._calibration.p_value(score)
        if self._now is not None:
            is_low = self._usual.below(means) <= score  # else it is too usual
            compare_again(p_value, score, self._now, is_low)
        return p_value

    def skip(self, m: int) -> StretchScores:
        """Take ``m`` rows without scores."""
        unknown = np.full((m, len(self.lengths)), np.nan)
        self.pending = np.concatenate([self.pending, unknown])
        self.pending_runs = np.concatenate([self.pending_runs, np.zeros((m, 2), np.int64)])
        return StretchScores(unknown[:, 0], np.full(m, self.lengths[0]))

    def are_lasting(self) -> Mask:
        """Tell which of the rows since the last boundary belong to a fault that lasts (m,)."""
        rows, result = self.pending_runs, np.zeros(len(self.pending_runs), np.bool_)
        reached = np.zeros(int(rows[:, 0].max(initial=0)) + 1, np.bool_)
        mark_long_runs(rows, self._shortest_fault, reached, result)
        return result

    @property
    def _shortest_fault(self) -> int:
        """Unusual stretches in a row that make a fault."""
        of_clusters = CLUSTERS_OF_FAULT * self._calibration.clusters.mean_size
        return max(LENGTHS_OF_FAULT * max(self.lengths), round(of_clusters))

    def update(self, counted: Mask) -> None:
        """Learn what is usual from the pending rows that are ``counted`` (m,)."""
        means = self.pending[counted]
        means = means[~np.isnan(means).any(axis=1)]
        self.pending, self.pending_runs = self.pending[:0], self.pending_runs[:0]
        if len(means) == 0:
            return
        if self._usual.n == 0:
            self._usual = self._usual.updated(means)
            self._calibration.update(self._usual.score(means)[0])
        else:
            self._calibration.update(self._usual.score(means)[0])
            self._usual = self._usual.updated(means)

    def measure_anew(self, scores: FloatArray | None) -> None:
        """Let recent stretches have the scores (n,) that recent records would have now.

        As with single records (`RecentRecords`): where a regime comes back, its stretches would
        else be lower than any before if units have moved in the meantime. None is no such scores.
        """
        self._now = None
        if scores is None or self._usual.n == 0:
            return
        n, k = len(scores), len(self.lengths)
        means, one_slot = np.empty((n, k)), np.zeros((1, k, 2))
        slots, fresh = np.zeros(n, np.int64), np.zeros(n, np.bool_)
        add_scores(scores, slots, fresh, self._keep, one_slot, means)
        below = self._usual.below(means)
        self._now = Calibration(sequential=True)
        self._now.restore(below[~np.isnan(below)])

    def follow_scores(self) -> None:
        """Take scores from now on for those of a younger stream, as a measure was fitted anew."""
        self._usual = self._usual._replace(n=min(self._usual.n, AFTER_REFIT))

    def forget(self) -> None:
        """Learn anew what is usual, in a new regime."""
        self._usual = Usual.unknown(len(self.lengths))
        self._calibration = Calibration(sequential=True)
        self._now = None

    def state(self, slots: int) -> dict[str, NDArray[Any]]:
        """Return all that ``restore`` needs, of so many slots in use."""
        return {
            "stretch_means": self._means[:slots],
            "stretch_level": self._usual.level,
            "stretch_spread": self._usual.spread,
            "stretch_records": np.array([self._usual.n]),
            "stretch_recent": self._calibration.recent,
            "stretch_pending": self.pending,
            "stretch_runs": self._runs[:slots],
            "stretch_pending_runs": self.pending_runs,
            **self.alarms.state(slots),
        }

    def restore(self, arrays: dict[str, NDArray[Any]], pending: int) -> None:
        """Restore a state with so many ``pending`` rows, which `measure_anew` completes.

        StateError if it cannot be one.
        """
        k, means = len(self.lengths), arrays["stretch_means"]
        level, spread = arrays["stretch_level"], arrays["stretch_spread"]
        if means.shape[1:] != (k, 2) or not np.isfinite(means).all() or (means[..., 1] < 0).any():
            raise StateError("state: expected finite means of stretches")
        if level.shape != (k,) or spread.shape != (2, k) or not np.isfinite(level).all():
            raise StateError("state: expected a level and spreads of stretches")
        if not ((spread > 0) & (spread < np.inf)).all():
            raise StateError("state: expected positive spreads of stretches")
        if arrays["stretch_pending"].shape != (pending, k) or arrays["stretch_recent"].ndim != 1:
            raise StateError("state: expected the stretches of each pending record")
        runs, pending_runs = arrays["stretch_runs"], arrays["stretch_pending_runs"]
        if runs.shape != means.shape[:1] or pending_runs.shape != (pending, 2):
            raise StateError("state: expected the number of unusual stretches in a row")
        most_slots = max(len(runs), 1)  # rows that were skipped have the first one
        if (pending_runs < 0).any() or (pending_runs[:, 0] >= most_slots).any():
            raise StateError("state: expected the slot of each pending record")
        if np.isnan(arrays["stretch_recent"]).any():
            raise StateError("state: expected recent stretches")
        self._means, self.pending = means, arrays["stretch_pending"]
        self._runs, self.pending_runs = runs, pending_runs
        self._usual = Usual(level, spread, record_count(arrays["stretch_records"].item()))
        self._calibration.restore(arrays["stretch_recent"])
        self.alarms.restore(arrays)


class Usual(NamedTuple):
    """Which means of stretches are usual: ``level`` (k,), ``spread`` (2, k) below and above it.

    Median and mean absolute deviations, averaged over recent batches; of ``n`` records so far.
    """

    level: FloatArray
    spread: FloatArray
    n: int

    @classmethod
    def unknown(cls, k: int) -> Usual:
        """Return what is known of ``k`` lengths before any record."""
        return cls(np.zeros(k), np.ones((2, k)), 0)

    def score(self, means: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return minus the largest distance (m,) of the means (m, k) from their levels in spreads.

        And the column (m,) that has it. NaN where nothing is known.
        """
        gap = means - self.level
        above = gap / self.spread[1] if self.n >= YOUNG else np.zeros(gap.shape)
        far = np.where(gap < 0.0, -gap / self.spread[0], above)
        far[np.isnan(gap)] = -np.inf
        column = far.argmax(axis=1)
        score = -far[np.arange(len(far)), column]
        score[np.isposinf(score) | (self.n == 0)] = np.nan
        return score, column

    def below(self, means: FloatArray) -> FloatArray:
        """Return the same score (m,) without means above their levels; NaN where one is unknown."""
        lowest = np.full(len(means), np.inf)
        for k, (level, spread) in enumerate(zip(self.level, self.spread[0], strict=True)):
            lowest = np.minimum(lowest, (means[:, k] - level) / spread)  # keeps NaN
        return lowest

    def updated(self, means: FloatArray) -> Usual:
        """Return what is usual after a learning batch with these means (m, k)."""
        n = self.n + len(means)
        share = 1.0 if self.n == 0 else share_of_batch(len(means), n)
        level = self.level + share * (np.median(means, axis=0) - self.level)
        gap = means - level
        below, above = (np.maximum(side, 0.0).mean(axis=0) for side in (-gap, gap))
        spread = 2.0 * np.array([below, above])
        average = self.spread + share * (spread - self.spread)
        return Usual(level, np.where((spread > 0.0) & (average > 0.0), average, self.spread), n)


@kernel
def add_scores(
    scores: Array, slots: Array, fresh: Array, keep: Array, means: Array, result: Array
) -> None:
    """Fill ``result`` (m, k) with running means that include each of the ``scores`` (m,).

    Changes ``means`` (slots, k, 2), mean and weight. NaN while a slot has few scores.
    """
    for r in range(len(scores)):
        own = means[slots[r]]
        if fresh[r]:
            own[:] = 0.0
        x = scores[r]
        for k in range(len(keep)):
            result[r, k] = math.nan
            if x == x:
                own[k, 1] = keep[k] * own[k, 1] + 1.0
                own[k, 0] += (max(x, DEEPEST) - own[k, 0]) / own[k, 1]
                if own[k, 1] * (1.0 - keep[k]) >= FULL:
                    result[r, k] = own[k, 0]


@kernel
def add_runs(unusual: Array, slots: Array, fresh: Array, runs: Array, result: Array) -> None:
    """Fill ``result`` (m, 2) with the slot of each row, and its unusual rows in a row.

    ``unusual`` (m,) says which rows are. Changes ``runs`` (slots,), which go on.
    """
    for r in range(len(unusual)):
        slot = slots[r]
        before = 0 if fresh[r] else runs[slot]
        runs[slot] = before + 1 if unusual[r] else 0
        result[r, 0], result[r, 1] = slot, runs[slot]


@kernel
def mark_long_runs(rows: Array, least: int, reached: Array, result: Array) -> None:
    """Set ``result`` (m,) for the rows of runs that reach ``least`` by the last row.

    ``rows`` (m, 2) are as `add_runs` fills them. Changes ``reached`` (slots,), which begins false.
    """
    for r in range(len(rows) - 1, -1, -1):
        slot, run = rows[r]
        reached[slot] = run > 0 and (reached[slot] or run >= least)
        result[r] = reached[slot]
        if run == 1:  # what lies before is another run
            reached[slot] = False
