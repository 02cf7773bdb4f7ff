"""The reference set: the recent records that p-values are shares of, and those held back from it.

One rule says what is learned and what later records are compared with. A record is *far* if the
tail of the recent scores says that a usual one is as low once in a million records. Far records are
held back: they are not learned and do not count. So a fault does not become the model, and does not
hide the next one. Once ``adapt_after`` records have been held back, or as large a share of a stream
younger than ``RECENT``, they are not rare any more: all are learned, and the recent ones count.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.state_schema import BELOW_ONE, Entry, counts, expect, read
from faust_oslrau.learner.stored import Places, Stored
from faust_oslrau.learner.vector.compiler import Array, kernel

from .calibration import Calibration, ranks, replace_ordered
from .neighbours import GOLDEN

FACTOR = np.uint64(GOLDEN)
"""Odd, so that products with it differ where numbers do."""

SHIFT, LOWEST_BITS = np.uint64(32), np.uint64(11)

ZERO = np.uint64(0)
"""Bits of a zero, whatever its sign."""

MISSING = np.uint64(0x7FF8000000000000)
"""Bits of a missing value: there is more than one NaN."""


def marks(rows: FloatArray, slots: IntArray) -> FloatArray:
    """Return numbers (m,) that are equal where rows (m, d) and slots (m,) are.

    And, but for one pair in 2**53, nowhere else.
    """
    result = np.empty(len(rows))
    rows = np.ascontiguousarray(rows)
    fill_marks(rows, rows.view(np.uint64), slots, result)
    return result


def share_alike(ascending: FloatArray, mark: FloatArray) -> FloatArray:
    """Return the share (m,) of ordered marks (n,), with the record itself, equal to each mark."""
    below, not_above = ranks(ascending, mark)
    return np.asarray((not_above - below) / (len(ascending) + 1.0), np.float64)


@kernel
def fill_marks(rows: Array, bits: Array, slots: Array, result: Array) -> None:
    """Fill ``result`` (m,) with a hash of each row (m, d), of these ``bits``, and its slot.

    It is in [0, 1).
    """
    m, d = rows.shape
    for i in range(m):
        h = np.uint64(slots[i]) * FACTOR
        for j in range(d):
            value = bits[i, j]
            if rows[i, j] == 0.0:
                value = ZERO
            elif rows[i, j] != rows[i, j]:
                value = MISSING
            h = (h ^ value) * FACTOR
            h ^= h >> SHIFT
        result[i] = np.float64((h * FACTOR) >> LOWEST_BITS) / 9007199254740992.0


RECENT = 8192
"""Records that p-values are shares of: so many that eight are below a rate of 0.001, so few that
they follow the stream."""

YOUNG, SETTLED = 496, 2016
"""The scores of so many first records do not count once the stream has so many: a young model gave
them, so they are low, and hid faults for the next 8,192 records."""

FAR = 1e-6
"""Share of usual records that are taken for far ones. With 1e-4, more records of slow streams were
held back, and more of them alarmed."""

ADAPT_AFTER = 512
"""Records held back that are learned, by default."""

_SCORES = Entry(("n",), -np.inf, np.inf)
_HELD = {
    "rows": Entry(("n", "d"), nan=True),
    "scores": _SCORES,
    "densities": _SCORES,
    "numbers": counts("n"),
}


class Admitted(NamedTuple):
    """What became of a learning batch (m, d).

    Attributes
    ----------
    usual
        Rows to learn (m,), which are not far.
    released
        Rows held back until now (k, d), to be learned after the usual ones.
    """

    usual: Mask
    released: FloatArray


class Held(NamedTuple):
    """Rows (h, d), their scores, log-densities and numbers in the stream (h,), oldest first."""

    rows: FloatArray
    scores: FloatArray
    densities: FloatArray
    numbers: IntArray

    @classmethod
    def none(cls, d: int) -> Self:
        """Return no rows of ``d`` fields."""
        return cls(np.empty((0, d)), np.empty(0), np.empty(0), np.empty(0, np.int64))

    @classmethod
    def restored(cls, arrays: Arrays) -> Self:
        """Return the rows of a state; StateError if they cannot be."""
        held = cls(*read(arrays, _HELD, "held_"))
        expect((np.diff(held.numbers) > 0).all(), "the records held back in order")
        return held

    def of(self, which: Mask) -> Self:
        """Return some of the rows (h,)."""
        return type(self)._make(column[which] for column in self)

    def and_those(self, others: Held) -> Self:
        """Return these rows and then others."""
        if len(self.rows) == 0:
            return type(self)(*others)
        return type(self)._make(map(np.concatenate, zip(self, others, strict=True)))


class Reference(Stored):
    """Recent records by their scores, and the far ones.

    Changes in ``admit`` alone, which the scorer calls at learning boundaries, so that p-values do
    not depend on how the stream was cut into blocks.

    Parameters
    ----------
    adapt_after
        Of ``RECENT`` records, so many held back are learned; from 1 to ``RECENT``.

    Attributes
    ----------
    scores, densities
        Scores (n,) of the last ``RECENT`` records that count, and their log-densities, oldest
        first.
    marks
        Marks (k,) of the last ``RECENT`` records, far ones too, oldest first; see `alike`.
    held
        Records held back, oldest first.
    """

    schema: ClassVar = {
        "scores": _SCORES,
        "densities": _SCORES,
        "marks": Entry(("k",), 0.0, BELOW_ONE),
    }
    prefix = "recent_"

    def __init__(self, adapt_after: int = ADAPT_AFTER) -> None:
        require(1 <= adapt_after <= RECENT, "adapt_after", adapt_after, f"from 1 to {RECENT}")
        self.adapt_after = adapt_after
        self.scores, self.densities, self.marks = np.empty(0), np.empty(0), np.empty(0)
        self.held = Held.none(0)
        self._calibrate(np.empty(0), np.empty(0))

    def p_value(self, scores: FloatArray, marks: FloatArray | None = None) -> FloatArray:
        """Return the p-values (m,) of scores (m,): the share of recent records not above each.

        At least the share of recent records with the same mark. NaN before the first records.
        """
        p_value = self._calibration.p_value(scores)
        if marks is None or len(self.marks) == 0:
            return p_value
        return np.maximum(p_value, share_alike(self._ascending_marks, marks))

    def score_at(self, p_value: FloatArray) -> FloatArray:
        """Return the scores (m,) that have these p-values; infinite before the first records."""
        return self._calibration.score_at(p_value)

    def lowest_usual_density(self, alarm_rate: float) -> float:
        """Return the log-density above which a record is usual: this share of recent ones is lower.

        -inf before the first records.
        """
        n = len(self.densities)
        lowest = int(alarm_rate * n)
        return float(np.partition(self.densities, lowest)[lowest]) if n > 0 else -np.inf

    def admit(
        self, rows: FloatArray, scores: FloatArray, densities: FloatArray, marks: FloatArray,
        end: int,
    ) -> Admitted:  # fmt: skip
        """Take in a learning batch: the stream's rows (m, d) up to number ``end``.

        ``scores`` and ``densities`` (m,) are NaN for rows that could not be scored, ``marks`` (m,)
        for those that equal no others.
        """
        far, released = scores < self._fence, Held.none(rows.shape[1])
        usual = np.array([scores, densities]).compress(scores >= self._fence, axis=1)
        if far.any():
            batch = Held(rows, scores, densities, np.arange(end - len(rows), end))
            self.held = self.held.and_those(batch.of(far))
        if len(self.held.rows) * RECENT >= self.adapt_after * min(end, RECENT):
            released, self.held = self.held, released
            recent = released.of(released.numbers >= end - RECENT)
            usual = np.hstack([usual, [recent.scores, recent.densities]])
        most = RECENT if end < SETTLED else min(end - YOUNG, RECENT)
        self.densities = np.concatenate([self.densities, usual[1]])[-most:]
        self.scores, ascending = moved(self.scores, self._ascending, usual[0], most)
        known = marks[~np.isnan(marks)]
        self.marks, ascending_marks = moved(self.marks, self._ascending_marks, known)
        self._calibrate(ascending, ascending_marks)
        return Admitted(~far, released.rows)

    def add_fields(self, places: Places) -> None:
        """Make room for more fields; marks of wider rows equal none of those so far."""
        self.held = self.held._replace(rows=places.widened(self.held.rows, 1))
        self.forget_marks()

    def forget_marks(self) -> None:
        """Let the records so far equal none of those to come."""
        self.marks = np.empty(0)
        self._calibrate(self._ascending, self.marks)

    def _calibrate(self, ascending: FloatArray, ascending_marks: FloatArray) -> None:
        self._ascending, self._ascending_marks = ascending, ascending_marks
        self._calibration = Calibration(ascending)
        self._fence = self._calibration.lower_bound(FAR)

    def state(self, slots: int | None = None) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        held = {f"held_{name}": column for name, column in self.held._asdict().items()}
        return super().state() | held

    def restore(self, arrays: Arrays) -> None:
        """Restore a state; StateError if it cannot be one."""
        most = range(RECENT + 1)
        self.read_state(arrays, n=most, k=most)
        self.held = Held.restored(arrays)
        self._calibrate(np.sort(self.scores), np.sort(self.marks))


def moved(
    recent: FloatArray, ascending: FloatArray, new: FloatArray, most: int = RECENT
) -> tuple[FloatArray, FloatArray]:
    """Return the last ``most`` of some numbers and new ones: oldest first, and ascending."""
    new = new[-most:]
    recent = np.concatenate([recent, new])
    start = max(len(recent) - most, 0)
    return recent[start:], replace_ordered(ascending, np.sort(recent[:start]), np.sort(new))
