"""The last minutes of a partition, second by second, for the page.

Processing records only appends to small buffers; all else is computed when a page asks.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.app.pipeline import ProcessedBlock
from faust_oslrau.topics import OutMessage

SECONDS = 300
"""How far back the page can look."""

ANOMALIES = 50
"""Anomalies that are kept, the last ones."""

EVENTS = 20
"""Events of the stream that are kept, the last ones."""

# Enough for quantiles of 5 and 95 %, few enough that five minutes are 300 kB a partition.
_SAMPLE_PER_SECOND = 128
# A record may be as large as a message; of a larger one the page shows the score alone.
_LARGEST_ANOMALY_BYTES = 16 * 1024


@dataclass(slots=True)
class Second:
    """One second of one partition, or of several together.

    Attributes
    ----------
    time
        Seconds since 1970 (UTC), whole.
    scored, rejected, replayed, anomalies
        Numbers of records.
    lowest
        Least log-likelihood of all of its records, NaN where there is none.
    sample
        Log-likelihoods of some of them, in pieces.
    """

    time: int
    scored: int = 0
    rejected: int = 0
    replayed: int = 0
    anomalies: int = 0
    lowest: float = np.nan
    sample: list[NDArray[np.float64]] = field(default_factory=list)

    @property
    def sampled(self) -> int:
        """Size of the sample."""
        return sum(map(len, self.sample))

    def add_scores(self, log_likelihood: NDArray[np.float64]) -> None:
        """Take note of the scores of a block, and keep some of them."""
        room = _SAMPLE_PER_SECOND - self.sampled
        if len(log_likelihood) == 0:
            return
        self.lowest = float(np.fmin(self.lowest, np.fmin.reduce(log_likelihood)))
        if room > 0:
            step = -(-len(log_likelihood) // room)
            self.sample.append(log_likelihood[::step].copy())

    def merge(self, other: Second) -> None:
        """Add the same second of another partition."""
        for name in ("scored", "rejected", "replayed", "anomalies"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.lowest = float(np.fmin(self.lowest, other.lowest))
        self.sample += other.sample

    def quantiles(self, *shares: float) -> list[float | None]:
        """Return quantiles of the sample, None where there is none."""
        values = np.concatenate([*self.sample, np.empty(0)])
        values = values[~np.isnan(values)]
        if len(values) == 0:
            return [None] * len(shares)
        return [float(value) for value in np.quantile(values, shares)]


class Noted(NamedTuple):
    """An anomaly or an event, and when (seconds since 1970) it was acknowledged."""

    noted: float
    message: OutMessage


class History:
    """The last minutes and anomalies of one partition."""

    def __init__(self) -> None:
        self.anomalies: deque[Noted] = deque(maxlen=ANOMALIES)
        self.events: deque[Noted] = deque(maxlen=EVENTS)
        self._seconds: deque[Second] = deque(maxlen=SECONDS)
        self._lags: deque[tuple[float, int]] = deque(maxlen=SECONDS)

    def add_emitted(self, block: ProcessedBlock) -> None:
        """Take note of records whose outputs are acknowledged."""
        now = time.time()
        second = self._second(int(now))
        second.scored += len(block.scores)
        second.rejected += len(block.dead_letters)
        second.anomalies += len(block.anomalies)
        second.add_scores(block.log_likelihood)
        for message in block.anomalies[-ANOMALIES:]:
            self.anomalies.append(Noted(now, _small(message, block)))
        self.events.extend(Noted(now, message) for message in block.events)

    def add_replayed(self, records: int) -> None:
        """Take note of records that were learned again."""
        self._second(int(time.time())).replayed += records

    def add_lag(self, records: int) -> None:
        """Take note of how many records wait in the log."""
        self._lags.append((time.time(), records))

    def lag_at(self, moments: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how many records waited at these times, NaN before it was known."""
        noted = np.array([(-np.inf, np.nan), *self._lags])
        lags: NDArray[np.float64] = noted[np.searchsorted(noted[:, 0], moments, "right") - 1, 1]
        return lags

    def since(self, moment: int) -> Iterator[Second]:
        """Yield the seconds from `moment` on in which something was done, the last one first."""
        return takewhile(lambda second: second.time >= moment, reversed(self._seconds))

    def _second(self, now: int) -> Second:
        if not self._seconds or self._seconds[-1].time < now:
            self._seconds.append(Second(now))
        return self._seconds[-1]


def merged(parts: Iterable[History], since: int, until: int) -> list[Second]:
    """Return each second from `since` to before `until`, of several partitions together."""
    seconds = [Second(moment) for moment in range(since, until)]
    for part in parts:
        for second in part.since(since):
            if second.time < until:
                seconds[second.time - since].merge(second)
    return seconds


def _small(message: OutMessage, block: ProcessedBlock) -> OutMessage:
    """Return the anomaly, without its record where that is large."""
    if len(message.value or b"") <= _LARGEST_ANOMALY_BYTES:
        return message
    return next(score for score in block.scores if score.offset == message.offset)
