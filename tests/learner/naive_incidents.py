"""Evidence and incidents in plain Python, record by record, as the rules are written."""

import math
from statistics import median

from faust_oslrau.learner.scoring.clock import DAY
from faust_oslrau.learner.scoring.evidence import Found, Place
from faust_oslrau.learner.scoring.incident import LEVELS, Incident

SHAPES = (0.2, 0.5)
WAYS = 3
MOST = math.log(2 * 8192)


def limit(rate):
    return math.log(WAYS / rate)


class NaiveSums:
    """The sums of one entity, where each began, and what was the most unusual since the first."""

    def __init__(self):
        self.sums, self.starts = [0.0, 0.0], [None, None]
        self.lowest, self.peak, self.anomalies = 1.0, None, 0
        self.stretch = []


class NaiveEvidence:
    def __init__(self):
        self.of = {}
        self.squares = []

    @property
    def dependence(self):
        if len(self.squares) < 8:
            return 1.0
        most = math.log(100)
        variance = 2 * (1 - (1 + most) / 100) - 0.99**2
        return max(median(self.squares[-64:]) / (32 * variance * 0.455), 1.0)

    def add(self, p, stuck, is_anomaly, place, slot, enough):
        own, nats = self.of.setdefault(slot, NaiveSums()), min(-math.log(p), MOST)
        stuck = max(stuck)
        own.stretch.append(min(nats, math.log(100)) - 0.99)
        if len(own.stretch) == 32:
            self.squares.append(sum(own.stretch) ** 2)
            own.stretch = []
        if max(own.sums) <= 0:
            own.lowest, own.anomalies = 1.0, 0
        if p <= own.lowest:
            own.lowest, own.peak = p, place
        own.anomalies += is_anomaly
        for k, shape in enumerate(SHAPES):
            if own.sums[k] <= 0:
                own.starts[k] = place
            own.sums[k] = max(own.sums[k] + math.log(shape) + (1 - shape) * nats, 0.0)
        together = max(own.sums)
        if stuck < enough and together < enough * self.dependence:
            return None
        start = own.starts[own.sums.index(together)]
        own.sums = [0.0, 0.0]
        if stuck >= enough and stuck >= together:
            return Found(stuck, place, place, p, int(is_anomaly))
        return Found(together, start, own.peak, own.lowest, own.anomalies)


class NaiveIncidents:
    def __init__(self, parameters, most_open):
        self.parameters, self.most_open = parameters, most_open
        self.evidence = NaiveEvidence()
        self.open = {}
        self.events = []

    def trace(self, rows):
        columns = (column.tolist() for column in rows)
        for row, one in enumerate(zip(*columns, strict=True)):
            self.follow(row, *one)
        return self.events

    def follow(self, row, p, stuck, is_anomaly, place, slot, fresh, time, now):
        place = Place(*place)
        for other, held in list(self.open.items()):
            if self.is_late(held, place, time) or (fresh and other == slot):
                self.close(row, other)
        if fresh:
            self.evidence.of.pop(slot, None)
        held = self.open.get(slot)
        if held is not None:
            held["quiet"] += 1
            held["anomalies"] += is_anomaly
        found = None
        if p == p:
            enough = self.enough(is_open=held is not None)
            found = self.evidence.add(p, stuck, is_anomaly, place, slot, enough)
        if found is not None:
            if held is not None or len(self.open) < self.most_open:
                self.weigh(row, slot, found, place)
        elif held is not None and self.is_quiet(held, now):
            self.close(row, slot)

    def is_late(self, held, place, time):
        seconds, latest = self.parameters.quiet_seconds, held["incident"].latest.timestamp
        if seconds is None or latest < 0:
            passed = place.number - held["incident"].latest.number
            return passed > self.most_open * self.parameters.quiet_records
        return time >= latest + 1000 * seconds

    def is_quiet(self, held, now):
        latest = held["incident"].latest.timestamp
        counts = self.parameters.quiet_seconds is None or latest < 0 or latest > now + DAY
        return counts and held["quiet"] >= self.parameters.quiet_records

    def enough(self, is_open):
        rate = self.parameters.false_alarm_rate
        return limit(max(rate, 0.1 / self.parameters.quiet_records) if is_open else rate)

    def close(self, row, slot):
        self.events.append((row, "closed", self.open.pop(slot)["incident"]))

    def weigh(self, row, slot, found, place):
        start, peak, p_value = found.start, found.peak, found.p_value
        anomalies, nats, opened, level = found.anomalies, found.nats, place, -1
        if (held := self.open.get(slot)) is not None:
            old = held["incident"]
            start, opened, level = old.start, old.opened, old.level
            p_value, _, peak = min((old.p_value, 0, old.peak), (p_value, 1, peak))
            anomalies, nats = old.anomalies + held["anomalies"], old.evidence + nats
        severity = min(25 * math.log10(1 + nats), 100)
        now = (severity >= self.parameters.major) + (severity >= self.parameters.critical)
        incident = Incident(opened, start, peak, place, p_value, anomalies, nats, int(now))
        self.open[slot] = {"incident": incident, "quiet": 0, "anomalies": 0}
        if held is None:
            self.events.append((row, "opened", incident))
        elif LEVELS[level + 1 : now + 1]:
            self.events.append((row, "updated", incident))
