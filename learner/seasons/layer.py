"""Seasons: rows less what is usual at their hour, with exact densities in the fields' units."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.protocol import InUnits
from faust_oslrau.learner.queries.scaling import Scaling
from faust_oslrau.learner.state_schema import LARGEST, POSITIVE, Entry, flags, read
from faust_oslrau.learner.stored import Places, Stored
from faust_oslrau.learner.typical import FARTHEST
from faust_oslrau.learner.vector.blocks import row_sums

from .calendar import UNKNOWN, Calendar, week, weekday
from .days import (
    DAYS_OF_WEEK,
    HOURS,
    OF_HOUR,
    QUARTERS,
    WEEK,
    Days,
    Usual,
    between_hours,
)
from .recent import RecentRows, Rows
from .shapes import find_shape, median, middle, without_days

FEWEST_DAYS, FEWEST_WEEKS = 5, 4
"""Days that a daily shape must have predicted before it counts, and weeks that a weekly one must
have predicted."""

LEVELS, STEPS, SPREADS = slice(0, 2), slice(2, 4), slice(4, 6)
"""Shapes of a field, of day and week: levels of hours, what quarters of hours have beyond them,
spreads of hours."""

WIDEST = 3.0
"""Largest difference from usual of the logarithm of a deviation."""


_USUAL = {"usual": Entry((2, WEEK, "d"), [[[-LARGEST]], [[POSITIVE]]])}


class Seasons(Stored):
    """The level and spread of each field at each hour of the week.

    They change in ``end_batch`` alone, which the scorer calls at learning boundaries, and only when
    a date was closed. A row is taken at its own time or, without one, at that of the row before.

    Parameters
    ----------
    zone
        Time zone whose days and weeks count, such as ``Europe/Berlin``.

    Attributes
    ----------
    counting
        Which shapes count for each field (6, d): levels, steps and spreads, of day and week.
    """

    schema: ClassVar = {
        "_reference": Entry((2, "d"), [[-LARGEST], [POSITIVE]], field=[[0.0], [1.0]]),
        "counting": flags(6, "d"),
        "_centre": Entry(("d",)),
        "_latest": Entry((1,), dtype="<i8"),
    }
    prefix = "season_"

    def __init__(self, zone: str) -> None:
        self.zone = zone
        self.recent = RecentRows()
        self._calendar = Calendar(zone)
        self._latest = -1
        self._reference = np.empty((2, 0))
        self._days = Days(0)
        self.counting = np.zeros((6, 0), np.bool_)
        self._centre = np.empty(0)
        self._usual = Usual.constant(0)

    def take(
        self,
        values: FloatArray,
        times: IntArray,
        slots: IntArray,
        fresh: Mask,
        beside: FloatArray | None = None,
    ) -> InUnits:
        """Return the next rows (m, d) less what is usual at their hour, and keep them.

        ``times`` (m,) are time stamps in milliseconds, negative for none; ``slots``, ``fresh`` (m,)
        and ``beside`` (m, 3) are kept with the rows.
        """
        filled = self.known(times)
        self._latest = int(filled[-1]) if len(filled) else self._latest
        kept = np.zeros((len(values), 3)) if beside is None else beside
        rows = Rows(values, filled, slots, fresh, kept)
        self.recent.add(rows)
        return self.less_usual(rows)

    @property
    def n_days(self) -> int:
        """The number of whole days that are known."""
        return len(self._days.dates)

    def known(self, times: IntArray) -> IntArray:
        """Return time stamps (m,), that of the row before in place of an unknown one."""
        place = np.maximum.accumulate(np.where(times >= 0, np.arange(len(times)), -1))
        return np.where(place >= 0, times[place], self._latest)

    def less_usual(self, rows: Rows) -> InUnits:
        """Return rows less what is usual at their hour."""
        m, d = rows.values.shape
        if self._usual.level.shape[1] == 0:  # before the first boundary
            units = np.broadcast_to([0.0, 1.0], (m, d, 2))
            return InUnits(rows.values, np.zeros(m), units)
        date, hour = self._calendar.local(rows.times)
        known = (date != UNKNOWN)[:, None]
        at = np.where(known[:, 0], weekday(date) * QUARTERS + (hour * OF_HOUR).astype(np.int64), 0)
        ratio = np.where(known, self._usual.ratio[at], 1.0)
        shift = np.where(known, self._usual.level[at] + self._centre * (1.0 - ratio), 0.0)
        slope = np.where(known & ~np.isnan(rows.values), -self._usual.log_ratio[at], 0.0)
        units = np.stack([shift, ratio], axis=2)
        return InUnits((rows.values - shift) / ratio, row_sums(slope), units)

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
        location, scale = Scaling.of_rows(values).units
        # any units do for a field that comes late
        self._reference = np.stack([np.nan_to_num(location), np.nan_to_num(scale, nan=1.0)])
        self._days, self.counting = Days(d), np.zeros((6, d), np.bool_)
        self._centre = self._reference[0]
        self._usual = Usual.constant(d)

    def _learn(self) -> bool:
        """Learn the shapes from the closed dates; return whether others count than before."""
        before, days = self.counting, self._days
        levels, spreads = days.level.astype(np.float64), days.spread.astype(np.float64)
        within = np.exp(2.0 * np.nan_to_num(median(spreads.reshape(-1, spreads.shape[2]))))
        level = self._levels(levels, within)
        changed = (self.counting != before)[: SPREADS.start].any(axis=0)
        if changed.any():  # deviations were those from another level
            days.forget_spread(changed)
            spreads[:, :, changed] = np.nan
        half = np.full(spreads.shape[2], 0.5)  # GAIN of it is a gain in nats
        spread = between_hours(self._both(spreads, half, 0.0 * half, SPREADS))
        location, scale = self._reference
        rest = levels - of_dates(level, days.dates)
        centre = location + scale * median(rest.reshape(-1, rest.shape[2]))
        self._centre = np.where(np.isnan(centre), self._centre, centre)  # a field was not observed
        self._usual = Usual.of(level * scale, np.exp(np.clip(spread, -WIDEST, WIDEST)))
        return bool((self.counting != before).any())

    def _levels(self, levels: FloatArray, within: FloatArray) -> FloatArray:
        """Learn the level of each quarter of the week (672, d), from ``levels`` (j, 96, d).

        Levels of hours, with lines between them, and what quarters have beyond these where that is
        much against the variance ``within`` hours (d,): steps.
        """
        hours = of_hours(levels)
        variance = middle(without_days(hours).reshape(-1, hours.shape[2]) ** 2) + within
        level = between_hours(self._both(hours, variance, 0.0 * within, LEVELS))
        seasonal = self.counting[LEVELS].any(axis=0)
        rest = without_days(levels - of_dates(level, self._days.dates))
        unit = np.where(seasonal, within, np.inf)
        return level + self._both(rest, unit, FARTHEST * np.sqrt(within), STEPS)

    def _both(
        self, levels: FloatArray, unit: FloatArray, least: FloatArray, which: slice
    ) -> FloatArray:
        """Learn the daily and weekly shapes of ``levels`` (j, n, d); return their sum (7 n, d).

        ``which`` of the shapes they are.
        """
        dates, before = self._days.dates, self.counting[which]
        same, days = np.zeros(len(dates), np.int64), without_days(levels)
        daily = find_shape(days, same, dates, unit, FEWEST_DAYS, before[0], least)
        found = np.where(daily.counts, daily.values, 0.0)
        rest = levels - found
        rest = rest - median(rest.reshape(-1, rest.shape[2]))
        weekly = find_shape(rest, weekday(dates), week(dates), unit, FEWEST_WEEKS, before[1], least)
        total = np.zeros((DAYS_OF_WEEK, *levels.shape[1:])) + found
        total[: len(weekly.values)] += np.where(weekly.counts, weekly.values, 0.0)
        self.counting = self.counting.copy()
        self.counting[which] = daily.counts, weekly.counts
        total = total.reshape(-1, levels.shape[2])
        return np.asarray(total - total.mean(axis=0))

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, without a season."""
        super().add_fields(places)
        self._days.add_fields(places)
        self.recent.add_fields(places)
        level, ratio, _ = self._usual
        self._usual = Usual.of(places.widened(level, 1, 0.0), places.widened(ratio, 1, 1.0))

    def state(self, slots: int | None = None) -> Arrays:
        """Return all that ``restore`` needs."""
        return {
            **super().state(),
            "season_usual": np.stack(self._usual[:2]),
            **self._days.state(),
            **self.recent.state(),
        }

    def restore(self, arrays: Arrays, d: int | None, pending: int) -> None:
        """Restore a state of ``d`` fields, ``pending`` rows of which wait for the next boundary."""
        self.read_state(arrays, d=(0, d or 0))
        (usual,) = read(arrays, _USUAL, self.prefix, d=len(self._centre))
        self._usual = Usual.of(*usual)
        self._days = Days(len(self._centre))
        self._days.restore(arrays)
        self.recent.restore(arrays, d, pending)


def of_dates(level: FloatArray, dates: IntArray) -> FloatArray:
    """Return what each of the ``dates`` (j,) has of a week's ``level`` (672, d): (j, 96, d)."""
    return level.reshape(DAYS_OF_WEEK, QUARTERS, -1)[weekday(dates)]


def of_hours(levels: FloatArray) -> FloatArray:
    """Return the means (j, 24, d) of the quarters of each hour in ``levels`` (j, 96, d)."""
    quarters = levels.reshape(len(levels), HOURS, OF_HOUR, -1)
    seen = ~np.isnan(quarters).all(axis=2)
    return np.where(seen, middle(np.moveaxis(quarters, 2, 0)), np.nan)
