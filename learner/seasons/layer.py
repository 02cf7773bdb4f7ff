"""Seasons: rows less what is usual at their hour, with exact densities in the fields' units."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.queries.scaling import location_and_scale
from faust_oslrau.learner.scoring.blame import Blame
from faust_oslrau.learner.vector.compiler import Array, kernel

from .calendar import UNKNOWN, Calendar, week, weekday
from .days import HOURS, Days
from .recent import RecentRows, Rows
from .shapes import find_shape, median, middle, without_days

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

DAYS_OF_WEEK = 7

FEWEST_DAYS, FEWEST_WEEKS = 5, 4
"""Days that a daily shape must have predicted before it counts, and weeks that a weekly one must
have predicted."""

LEVEL_DAY, LEVEL_WEEK, SPREAD_DAY, SPREAD_WEEK = range(4)
"""Shapes of a field."""

WIDEST = 3.0
"""Largest difference from usual of the logarithm of a deviation."""


class SeasonalRows(NamedTuple):
    """Rows less what is usual at their hour.

    Attributes
    ----------
    rows
        Rows (m, d) as they would be at an average hour.
    log_jacobian
        Sum (m,) of the logarithms of the observed fields' slopes.
    units
        Shift and ratio of each field (m, d, 2): a value is the shift plus the ratio times the one
        here.
    """

    rows: FloatArray
    log_jacobian: FloatArray
    units: FloatArray


class Seasons:
    """The level and spread of each field at each hour of the week.

    They change in ``end_batch`` alone, which the scorer calls at learning boundaries, and only when
    a date was closed. A row is taken at its own time or, without one, at that of the row before.

    Parameters
    ----------
    zone
        Time zone whose days and weeks count, such as ``Europe/Berlin``.
    """

    def __init__(self, zone: str) -> None:
        self.zone = zone
        self.recent = RecentRows()
        self._calendar = Calendar(zone)
        self._last = -1
        self._reference = np.empty((2, 0))
        self._days = Days(0)
        self._counting = np.zeros((4, 0), np.bool_)
        self._centre = np.empty(0)
        self._shift = np.empty((DAYS_OF_WEEK * HOURS, 0))
        self._ratio = np.empty((DAYS_OF_WEEK * HOURS, 0))

    @property
    def counting(self) -> Mask:
        """Which shapes count for each field (4, d): level of day and week, spread of both."""
        return self._counting

    def take(
        self, values: FloatArray, times: IntArray, slots: IntArray, fresh: Mask
    ) -> SeasonalRows:
        """Return the next rows (m, d) less what is usual at their hour, and keep them.

        ``times`` (m,) are time stamps in milliseconds, negative for none; ``slots`` and ``fresh``
        (m,) are kept beside the rows.
        """
        filled = self.known(times)
        self._last = int(filled[-1]) if len(filled) else self._last
        rows = Rows(values, filled, slots, fresh)
        self.recent.add(rows)
        return self.less_usual(rows)

    def known(self, times: IntArray) -> IntArray:
        """Return time stamps (m,), that of the row before in place of an unknown one."""
        place = np.maximum.accumulate(np.where(times >= 0, np.arange(len(times)), -1))
        return np.where(place >= 0, times[place], self._last)

    def less_usual(self, rows: Rows) -> SeasonalRows:
        """Return rows less what is usual at their hour."""
        m, d = rows.values.shape
        if self._shift.shape[1] == 0:  # before the first boundary
            units = np.broadcast_to([0.0, 1.0], (m, d, 2))
            return SeasonalRows(rows.values, np.zeros(m), units)
        date, hour = self._calendar.local(rows.times)
        result = SeasonalRows(np.empty((m, d)), np.empty(m), np.empty((m, d, 2)))
        subtract(
            np.ascontiguousarray(rows.values), np.where(date == UNKNOWN, UNKNOWN, weekday(date)),
            hour, self._shift, self._ratio, *result,
        )  # fmt: skip
        return result

    def end_batch(self, *, learning: bool) -> bool:
        """End a learning batch; return whether other shapes count from now on.

        Then the units of rows have changed.
        """
        latest = self.recent.settle()
        if not learning:
            return False
        self._begin(latest.values)
        location, scale = self._reference
        date, hour = self._calendar.local(latest.times)
        shift, ratio = np.moveaxis(self.less_usual(latest).units, 2, 0)
        rest = latest.values - (shift + ratio * self._centre)
        values = (latest.values - location) / scale
        closed = self._days.add(values, rest / scale, latest.times, date, hour)
        return closed and self._learn()

    def _begin(self, values: FloatArray) -> None:
        """Learn the units of the stream from its first rows (m, d)."""
        d = values.shape[1]
        if self._reference.shape[1] == d:
            return
        self._reference = np.array([[0.0], [1.0]]) * np.ones(d)
        for v in range(d):
            column = values[:, v]
            column = column[~np.isnan(column)]
            if len(column) > 0:
                self._reference[:, v] = location_and_scale(column)
        self._days, self._counting = Days(d), np.zeros((4, d), np.bool_)
        self._centre = self._reference[0]
        self._shift = np.zeros((DAYS_OF_WEEK * HOURS, d))
        self._ratio = np.ones((DAYS_OF_WEEK * HOURS, d))

    def _learn(self) -> bool:
        """Learn the shapes from the closed dates; return whether others count than before."""
        before, days = self._counting, self._days
        levels, spreads = days.level.astype(np.float64), days.spread.astype(np.float64)
        within = np.exp(2.0 * np.nan_to_num(median(spreads.reshape(-1, spreads.shape[2]))))
        variance = middle(without_days(levels).reshape(-1, levels.shape[2]) ** 2) + within
        level = self._both(levels, variance, slice(LEVEL_DAY, LEVEL_WEEK + 1))
        changed = (self._counting != before)[:SPREAD_DAY].any(axis=0)
        if changed.any():  # deviations were those from another level
            days.forget_spread(changed)
            spreads[:, :, changed] = np.nan
        half = np.full(spreads.shape[2], 0.5)  # GAIN of it is a gain in nats
        spread = self._both(spreads, half, slice(SPREAD_DAY, SPREAD_WEEK + 1))
        location, scale = self._reference
        rest = levels - level.reshape(DAYS_OF_WEEK, *levels.shape[1:])[weekday(days.dates)]
        self._centre = location + scale * median(rest.reshape(-1, rest.shape[2]))
        self._ratio = np.exp(np.clip(spread, -WIDEST, WIDEST))
        # centre + (x - centre - level) / ratio: what is usual becomes the centre at each hour
        self._shift = level * scale + self._centre * (1.0 - self._ratio)
        return bool((self._counting != before).any())

    def _both(self, hours: FloatArray, unit: FloatArray, at: slice) -> FloatArray:
        """Learn the daily and weekly shapes of ``hours`` (j, 24, d); return their sum (168, d)."""
        dates, before = self._days.dates, self._counting[at]
        same, days = np.zeros(len(dates), np.int64), without_days(hours)
        daily = find_shape(days, same, dates, unit, FEWEST_DAYS, before[0])
        found = np.where(daily.counts, daily.values, 0.0)
        rest = hours - found
        rest = rest - median(rest.reshape(-1, rest.shape[2]))
        weekly = find_shape(rest, weekday(dates), week(dates), unit, FEWEST_WEEKS, before[1])
        total = np.zeros((DAYS_OF_WEEK, *hours.shape[1:])) + found
        total[: len(weekly.values)] += np.where(weekly.counts, weekly.values, 0.0)
        self._counting = self._counting.copy()
        self._counting[at] = daily.counts, weekly.counts
        total = total.reshape(DAYS_OF_WEEK * HOURS, -1)
        return np.asarray(total - total.mean(axis=0))

    def undo_blame(self, blame: Blame, units: FloatArray) -> Blame:
        """Return the blame of rows less what is usual at their hour in units of the rows.

        ``units`` (k, d, 2) are those of `SeasonalRows`.
        """
        shift, ratio = units[..., 0], units[..., 1]
        slope = -np.log(ratio)
        return blame._replace(
            value=shift + blame.value * ratio,
            nats=blame.nats - slope,
            usual=blame.usual - slope,
            expected=shift + blame.expected * ratio,
            deviation=blame.deviation * ratio,
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that ``restore`` needs."""
        return {
            "season_reference": self._reference,
            "season_counting": self._counting.astype(np.uint8),
            "season_centre": self._centre,
            "season_shift": self._shift,
            "season_ratio": self._ratio,
            "season_latest": np.array([self._last]),
            **self._days.state(),
            **self.recent.state(),
        }

    def restore(self, arrays: dict[str, NDArray[Any]], d: int | None, pending: int) -> None:
        """Restore a state of ``d`` fields, ``pending`` rows of which wait for the next boundary."""
        self._reference = arrays["season_reference"]
        width = self._reference.shape[-1]
        self._counting = arrays["season_counting"].astype(np.bool_)
        self._centre, self._shift = arrays["season_centre"], arrays["season_shift"]
        self._ratio = arrays["season_ratio"]
        self._last = int(arrays["season_latest"].item())
        hours = (DAYS_OF_WEEK * HOURS, width)
        shapes = [
            (self._reference, (2, width)), (self._counting, (4, width)),
            (self._centre, (width,)), (self._shift, hours), (self._ratio, hours),
        ]  # fmt: skip
        if width not in (0, d or 0) or any(array.shape != shape for array, shape in shapes):
            raise StateError("state: expected what is usual at each hour, for each field")
        if not all(map(_is_finite, (self._centre, self._shift, self._ratio, self._reference))):
            raise StateError("state: expected finite levels of hours")
        if not ((self._ratio > 0.0).all() and (self._reference[1] > 0.0).all()):
            raise StateError("state: expected positive deviations of hours")
        self._days = Days(width)
        self._days.restore(arrays)
        self.recent.restore(arrays, pending)


def _is_finite(array: FloatArray) -> bool:
    return bool(np.isfinite(array).all())


@kernel
def subtract(
    X: Array,
    weekdays: Array,
    hours: Array,
    shift: Array,
    ratio: Array,
    rows: Array,
    jacobian: Array,
    units: Array,
) -> None:
    """Fill ``rows`` (m, d) with (X - shift) / ratio at the ``weekdays`` and ``hours`` (m,).

    ``shift`` and ``ratio`` (168, d) are those in the middle of each hour of the week; between two
    of them they change linearly. A negative day of the week is unknown: nothing is subtracted.
    Fills ``jacobian`` (m,) and ``units`` (m, d, 2) as `SeasonalRows` has them.
    """
    n = shift.shape[0]
    for r in range(X.shape[0]):
        place = weekdays[r] * 24.0 + hours[r] - 0.5
        lower = math.floor(place)
        share = place - lower
        before, after = int(lower) % n, (int(lower) + 1) % n
        total = 0.0
        for v in range(X.shape[1]):
            usual, wide = 0.0, 1.0
            if weekdays[r] >= 0:
                usual = (1.0 - share) * shift[before, v] + share * shift[after, v]
                wide = (1.0 - share) * ratio[before, v] + share * ratio[after, v]
            units[r, v, 0], units[r, v, 1] = usual, wide
            rows[r, v] = (X[r, v] - usual) / wide
            if X[r, v] == X[r, v]:
                total -= math.log(wide)
        jacobian[r] = total
