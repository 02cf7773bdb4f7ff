"""Oracle of seasons: plain Python, one record and one hour at a time."""

import math
from datetime import UTC, datetime, timedelta
from statistics import fmean, median
from zoneinfo import ZoneInfo


def local(time, zone):
    """Return date and hour of a time stamp in milliseconds, and how much of the hour has passed."""
    there = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time)).astimezone(
        ZoneInfo(zone)
    )
    passed = there.minute / 60 + there.second / 3600 + there.microsecond / 3.6e9
    return there.date(), there.hour, passed


class NaiveDays:
    """Mean of the values (d,) in each quarter of an hour of each date, deviation in each hour."""

    def __init__(self, zone):
        self.zone, self.values, self.last = zone, {}, None

    def add(self, row, time):
        if self.last is not None and abs(time - self.last) < 24 * 3600 * 1000:
            date, hour, passed = local(time, self.zone)
            quarter = 4 * hour + int(4 * passed)
            for v, x in enumerate(row):
                if not math.isnan(x):
                    self.values.setdefault((date, quarter, v), []).append(x)
        self.last = time

    def dates(self):
        return sorted({date for date, _, _ in self.values})

    def mean(self, date, quarter, v):
        values = self.values.get((date, quarter, v))
        return fmean(values) if values else math.nan

    def spread(self, date, hour, v):
        quarters = range(4 * hour, 4 * hour + 4)
        values = [x for quarter in quarters for x in self.values.get((date, quarter, v), [])]
        if len(values) < 8:
            return math.nan
        mean = fmean(values)
        return 0.5 * math.log(sum((x - mean) ** 2 for x in values) / (len(values) - 1))


def shape(hours, group):
    """Return the mean of each hour of each group, drawn to 0; of one field without outliers.

    ``hours`` are lists of one number for each hour, NaN where it is missing.
    """
    flat = [x for day in hours for x in day if not math.isnan(x)]
    hours = [[x - fmean(flat) for x in day] for day in hours]
    cells = {}
    for day, g in zip(hours, group, strict=True):
        for hour, x in enumerate(day):
            if not math.isnan(x):
                cells.setdefault((g, hour), []).append(x)
    free = sum(len(cell) - 1 for cell in cells.values())
    variance = sum((x - fmean(cell)) ** 2 for cell in cells.values() for x in cell) / max(free, 1)
    noise = {at: variance / len(cell) for at, cell in cells.items()}
    between = max(fmean(fmean(cell) ** 2 - noise[at] for at, cell in cells.items()), 0.0)
    return {
        at: between / (between + noise[at]) * fmean(cell) if between > 0 else 0.0
        for at, cell in cells.items()
    }


def less_days(hours):
    """Return hours of days less the level of each day: medians of what days and hours share."""
    columns = [[x for x in column if not math.isnan(x)] for column in zip(*hours, strict=True)]
    of_hours = [median(column) if column else math.nan for column in columns]
    centre = fmean(x for x in of_hours if not math.isnan(x))
    result = []
    for day in hours:
        rest = [x - (usual - centre) for x, usual in zip(day, of_hours, strict=True)]
        level = median(x for x in rest if not math.isnan(x))
        result.append([x - level for x in day])
    return result
