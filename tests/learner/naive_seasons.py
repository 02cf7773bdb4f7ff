"""Oracle of seasons: plain Python, one record and one hour at a time."""

import math
from datetime import UTC, datetime, timedelta
from statistics import fmean
from zoneinfo import ZoneInfo


def local(time, zone):
    """Return date and hour of a time stamp in milliseconds, and how much of the hour has passed."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time)
    there = moment.astimezone(ZoneInfo(zone))
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
