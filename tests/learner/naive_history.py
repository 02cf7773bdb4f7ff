"""Oracle of the history's running means: plain Python, one record, field and span at a time."""

import math


class NaiveMeans:
    """Running means of records (d,) of several slots over spans (length, timed)."""

    def __init__(self, spans, centred=False):
        self.spans, self.centred = spans, centred
        self.values = {}  # of each slot and field: [value as it counts, weight of each span]
        self.means, self.last = {}, {}

    def process(self, slot, row, time, spread):
        """Return the means of each field over each span before a row, then add the row."""
        before = self.last.get(slot, -1)
        seconds = (time - before) / 1000 if before >= 0 and time > before else 0.0
        self.last[slot] = max(before, time)
        return [
            [self._take(slot, s, v, x, seconds, spread[s][v]) for v, x in enumerate(row)]
            for s in range(len(self.spans))
        ]

    def _take(self, slot, s, v, x, seconds, spread):
        length, timed = self.spans[s]
        known = self.values.setdefault((slot, s, v), [])
        mean = 0.0 if self.centred and math.isfinite(spread) else math.nan
        if known:
            total = sum(weight for _, weight in known)
            mean = sum(value * weight for value, weight in known) / total
        keep = math.exp(-(seconds if timed else 1.0) / length)
        for entry in known:
            entry[1] *= keep
        if not math.isnan(x):
            # a value far from the mean moves it as one at 4 spreads would
            total = sum(weight for _, weight in known)
            counted = mean + max(-4 * spread, min(x - mean, 4 * spread))
            known.append([x if math.isnan(mean) else counted, 1.0])
        return mean
