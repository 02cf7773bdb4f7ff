"""Oracle of silences: plain Python, with all gaps of an entity and all medians of a partition."""

import bisect
import itertools
import math
import statistics


class NaiveSilences:
    """Silences of records that come one at a time."""

    def __init__(self):
        self.stamps, self.medians = [], []
        self.now, self.partition, self.entities = 0.0, Gaps(), {}

    def process(self, entity, offset, timestamp):
        """Return ``(state, entity, last offset, length, limit)`` of what a record shows."""
        shown, before = [], self._time()
        if timestamp >= 0:
            self.stamps.append((timestamp, offset))
            if len(self.stamps) >= 5:
                self.medians.append(statistics.median_low(self.stamps[-5:]))
        moved = max(self._time()[0] - before[0], 0) if before else 0
        if moved:
            limit = self.partition.limit()
            if moved > limit:
                shown.append(("ended", None, before[1], moved, limit))
            step = min(moved, self.partition.limit_of_lists() / 3)
            self.partition.add(moved, self.now)
            self.now += step
        if entity is not None:
            own = self.entities.setdefault(entity, Gaps())
            gap, limit = self.now - own.last if own.last is not None else 0, own.limit()
            if gap > limit:
                shown.append(("ended", entity, own.offset, gap, limit))
            if gap > 0:
                own.add(gap, self.now)
            own.last, own.offset, own.silent = self.now, offset, False
        late = [
            (own.last + own.limit(), name, own)
            for name, own in self.entities.items()
            if not own.silent and own.last + own.limit() < self.now
        ]
        for deadline, name, own in sorted(late, key=lambda entry: entry[0]):
            own.silent = True
            shown.append(("began", name, own.offset, self.now - own.last, deadline - own.last))
        return shown

    def _time(self):
        """Return the latest of the medians of this stretch of 32 and of the one before."""
        if not self.medians:
            return None
        begin = max((len(self.medians) - 1) // 32 - 1, 0) * 32
        return max(self.medians[begin:], key=lambda entry: entry[0])


class Gaps:
    """The gaps of one entity, in sorted lists of 4,096 and of months."""

    def __init__(self):
        self.lists, self.months, self.since = [[]], [[]], 0.0
        self.last, self.offset, self.silent = None, None, False

    def add(self, gap, now):
        """Add a gap that ends now."""
        if now - self.since >= 30 * 86_400_000:
            self.months.append([])
            self.since = now
        bisect.insort(self.months[-1], gap)
        if gap > self.limit_of_lists():
            return
        if len(self.lists[-1]) == 4096:
            self.lists.append([])
        bisect.insort(self.lists[-1], gap)

    def recent(self):
        """Return the number of gaps in the last two lists."""
        return sum(map(len, self.lists[-2:]))

    def limit(self):
        """Return the longest silence that is usual."""
        ends = (gaps[-4:] for gaps in self.months[-2:])
        fourth = sorted([*itertools.chain(*ends), 0, 0, 0, 0], reverse=True)[3]
        return max(self.limit_of_lists(), 1.5 * fourth)

    def limit_of_lists(self):
        """Return what the last two lists say of the longest silence that is usual."""
        if self.recent() < 64:
            return math.inf
        ends = (gaps[-8:] for gaps in self.lists[-2:])
        largest = sorted(itertools.chain(*ends), reverse=True)[:8]
        slope = sum(math.log(gap / largest[7]) for gap in largest) / 7
        tail = largest[7] * max(8 / (self.recent() * 1e-6), 1) ** slope
        return max(tail, 3 * largest[0])
