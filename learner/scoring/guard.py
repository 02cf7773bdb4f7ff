"""The guard: records far below all usual scores are not learned, unless they persist."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import InvalidParameterError, StateError

FloatArray = NDArray[np.float64]

FENCE = 20.0
"""Interquartile ranges below the lower quartile from which on a score is far. A stream of Gaussians
or exponentials has no such score in a million records; incidents reach it soon."""

FEWEST_SCORES = 240
"""Fewest scores that quartiles are computed from."""

REGIME = 512
"""Records held back that make a new regime instead of an incident, by default."""

BURST = 16
"""They are counted among so many times as many records: a burst of up to 6 % is never a regime."""

SLOTS = 16
"""Number of past stretches of the stream in which far records are counted."""

SLOT = 1024
"""Records of a stretch. Far records that occur in nearly all stretches are a part of the stream."""

LONGEST_REGIME = SLOTS * SLOT // 2
"""Most records that a regime may need: half of those that are looked at."""

FEWEST_SLOTS = 12
"""Stretches with far records from which on these are usual. A share of 0.2 % of the records reaches
it, a burst shorter than 11,000 records does not."""

COMPACT = 0.25
"""Most spread of a cluster, as a share of its distance from the rest or of the rest's spread."""


class Parted(NamedTuple):
    """The decision about each row of a learning batch (m, d).

    Attributes
    ----------
    usual
        Rows to learn (m,).
    counted
        Rows whose scores count as usual (m,).
    regime
        Rows held back, now or before, that are to be learned after the usual ones.
    """

    usual: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    regime: FloatArray


class Guard:
    """Holds far records back at learning boundaries, and releases them if they persist.

    Parameters
    ----------
    adapt_after
        Records held back that make a new regime, up to ``LONGEST_REGIME``.

    Attributes
    ----------
    held
        Records held back (k, d), oldest first, and their ``positions`` in the stream (k,).
    far
        Positions of all far records in the last ``SLOTS * SLOT``.
    accepted
        Whether far records are learned for the time being.
    """

    def __init__(self, adapt_after: int = REGIME) -> None:
        if not 1 <= adapt_after <= LONGEST_REGIME:
            raise InvalidParameterError(
                f"adapt_after = {adapt_after}: expected from 1 to {LONGEST_REGIME}"
            )
        self.adapt_after = adapt_after
        self.held = np.empty((0, 0))
        self.positions = np.empty(0, np.int64)
        self.far = np.empty(0, np.int64)
        self.accepted = False

    def restore(
        self,
        held: FloatArray,
        positions: NDArray[np.int64],
        far: NDArray[np.int64],
        accepted: bool,
    ) -> None:
        """Restore a state; StateError if it cannot be one."""
        if held.ndim != 2 or positions.shape != held.shape[:1] or far.ndim != 1:
            raise StateError("state: expected a position for each record held back")
        if np.isinf(held).any():
            raise StateError("state: expected finite records held back")
        self.held, self.positions, self.far, self.accepted = held, positions, far, accepted

    def part(
        self,
        rows: FloatArray,
        score: FloatArray,
        ascending: FloatArray,
        end: int,
        room: int,
        lasting: NDArray[np.bool_] | None = None,
    ) -> Parted:
        """Decide about the stream's records up to number ``end`` by their scores.

        ``ascending`` are the recent scores to compare with; ``room`` is the most far scores that
        may be among them. ``lasting`` rows (m,) count as far, whatever their scores.
        """
        limit = fence(ascending)
        is_far = score < limit if lasting is None else (score < limit) | lasting
        if not (is_far.any() or self.accepted or len(self.far)):  # nearly always
            return Parted(~is_far, ~is_far, rows[:0])
        self._note(rows[is_far], np.arange(end - len(rows), end)[is_far], end)
        persistent = self._slots(end) >= FEWEST_SLOTS
        self.accepted = persistent and (self.accepted or is_compact(self.held, rows[~is_far]))
        counted = ~is_far
        if persistent:
            counted[:] = True
        elif is_far.any():
            room -= int(np.searchsorted(ascending, limit))
            counted[np.flatnonzero(is_far)[: max(room, 0)]] = True
            if lasting is not None:
                counted &= ~lasting
        return Parted(~is_far, counted, self._release(end))

    def _note(self, rows: FloatArray, positions: NDArray[np.int64], end: int) -> None:
        """Hold far records back, and forget those that are too old."""
        span = end - SLOTS * SLOT
        recent = self.positions >= span
        held = self.held[recent] if len(self.held) else rows[:0]
        self.held = np.concatenate([held, rows])
        self.positions = np.concatenate([self.positions[recent], positions])
        self.far = np.concatenate([self.far[self.far >= span], positions])

    def _slots(self, end: int) -> int:
        return len(np.unique((end - 1 - self.far) // SLOT))

    def _release(self, end: int) -> FloatArray:
        """Return the held records if they are not an incident."""
        recent = min(BURST * self.adapt_after, SLOTS * SLOT)
        regime = np.count_nonzero(self.positions >= end - recent) >= self.adapt_after
        if not (regime or self.accepted):
            return self.held[:0]
        released, self.held, self.positions = self.held, self.held[:0], self.positions[:0]
        if regime:
            self.far = self.far[:0]
        return released


def fence(ascending: FloatArray) -> float:
    """Return the score below which a record is far, -inf if there are too few recent scores."""
    n = len(ascending)
    if n < FEWEST_SCORES:
        return -np.inf
    lower, upper = ascending[n // 4], ascending[3 * n // 4]
    return float(lower - FENCE * (upper - lower))


def is_compact(held: FloatArray, usual: FloatArray) -> bool:
    """Return whether the held records are a cluster in some field: close, and far from the rest.

    Anomalies of many kinds are scattered around the usual records instead.
    """
    for v in range(held.shape[1]):
        some, rest = (column[~np.isnan(column)] for column in (held[:, v], usual[:, v]))
        if 2 * len(some) <= len(held) or len(rest) == 0:
            continue
        centre, around = np.median(some), np.median(rest)
        spread = np.median(np.abs(some - centre))
        apart = max(abs(centre - around), np.median(np.abs(rest - around)))
        if spread <= COMPACT * apart and apart > 0:
            return True
    return False
