"""The last minutes of a partition, second by second, for the page.

Processing only appends to small buffers; everything else is computed for a request of the page.
A clock may be set back: what lies in the future then is forgotten.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from faust_oslrau.app.pipeline import ProcessedBlock
from faust_oslrau.topics import OutMessage

from .last_incidents import LastIncidents
from .sampled_rows import SampledRows
from .watched_entities import WatchedEntities

SECONDS = 300
"""The length of the history."""

ANOMALIES = 50
"""The number of retained anomalies."""

EVENTS = 20
"""The number of retained drift events, and of events of entities."""

ALARMS = 2000
"""The number of anomalies by which the entities that alarm most are known."""

# Enough for quantiles of 5 and 95 %, few enough that five minutes take 300 kB for each partition.
_SAMPLE_PER_SECOND = 128
# Of an anomaly with a larger message the page shows the score without the record.
_MAX_ANOMALY_BYTES = 16 * 1024
# As much of a key as the page shows: it may be as long as a record.
_KEY_BYTES = 1024


@dataclass(slots=True)
class Second:
    """One second of one partition, or of several together.

    Attributes
    ----------
    time
        Whole seconds since 1970 (UTC).
    scored, rejected, replayed, anomalies
        Numbers of records.
    lowest
        The lowest log-likelihood of its records; NaN without any.
    sample
        Log-likelihoods of some of its records, in several arrays.
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
        """Add the scores of a block, and sample some of them."""
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
        """Return quantiles of the sample; None if it is empty."""
        values = np.concatenate([*self.sample, np.empty(0)])
        values = values[~np.isnan(values)]
        if len(values) == 0:
            return [None] * len(shares)
        return [float(value) for value in np.quantile(values, shares)]


class Noted(NamedTuple):
    """An anomaly or a drift event, and the time of its acknowledgement in seconds since 1970."""

    noted: float
    message: OutMessage

    @classmethod
    def of(cls, noted: float, message: OutMessage) -> Noted:
        """Return it with as much of its key as the page shows, which shows no headers."""
        key = message.key and message.key[:_KEY_BYTES]
        return cls(noted, message._replace(key=key, headers=()))


class History:
    """The last minutes, anomalies and incidents of one partition."""

    def __init__(self) -> None:
        self.anomalies: deque[Noted] = deque(maxlen=ANOMALIES)
        self.events: deque[Noted] = deque(maxlen=EVENTS)
        self.entity_events: deque[Noted] = deque(maxlen=EVENTS)
        self.alarming: deque[tuple[float, str]] = deque(maxlen=ALARMS)
        self.incidents = LastIncidents()
        self.knows_past_incidents = False
        self.rows = SampledRows(SECONDS)
        self._watched = WatchedEntities(SECONDS)
        self._seconds: deque[Second] = deque(maxlen=SECONDS)
        self._lags: deque[tuple[float, int]] = deque(maxlen=SECONDS)

    def add_emitted(self, block: ProcessedBlock) -> None:
        """Add records whose outputs are acknowledged."""
        now = time.time()
        second = self._second(int(now))
        second.scored += len(block.scores)
        second.rejected += len(block.dead_letters)
        second.anomalies += len(block.anomalies)
        second.add_scores(block.log_likelihood)
        for message in block.anomalies[-ANOMALIES:]:
            self.anomalies.append(Noted.of(now, _small(message, block)))
        has_anomalies = len(block.anomalies) > 0
        self.rows.add(
            int(now),
            block.rows,
            block.p_value,
            has_anomalies=has_anomalies,
            keys=block.keys,
            forecast=block.forecast,
        )
        self._watched.add(int(now), block)
        self.events.extend(Noted.of(now, message) for message in block.events)
        self.entity_events.extend(Noted.of(now, message) for message in block.entity_events)
        self.alarming.extend((now, entity) for entity in block.alarming)
        for event in block.incidents:
            if event.value is not None:
                self._add_incident(orjson.loads(event.value), now)
        self.incidents.close_others(block.open_incidents, now)

    def begin_anew(self) -> None:
        """Forget the records of a model that gives way to another one: it may have other fields."""
        self.rows = SampledRows(SECONDS)
        self._watched = WatchedEntities(SECONDS)

    def add_past_incidents(self, events: Iterable[dict[str, Any]]) -> None:
        """Add events of incidents from the anomalies topic."""
        now, self.knows_past_incidents = time.time(), True
        for event in events:
            self.incidents.add(event, now, is_past=True)

    def add_replayed(self, records: int) -> None:
        """Add records that were learned again."""
        self._second(int(time.time())).replayed += records

    def add_lag(self, records: int) -> None:
        """Add a measurement of the number of unread records."""
        now = time.time()
        while self._lags and self._lags[-1][0] > now:
            self._lags.pop()
        self._lags.append((now, records))

    def lag_at(self, moments: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the lags at these times (m,) in seconds; NaN before the first measurement."""
        points = np.array([(-np.inf, np.nan), *self._lags])
        lags: NDArray[np.float64] = points[np.searchsorted(points[:, 0], moments, "right") - 1, 1]
        return lags

    def rows_of(self, entity: str) -> SampledRows:
        """Return records of an entity, one of each second from the first call on, some before."""
        return self._watched.watch(entity.encode(), int(time.time()), self.rows)

    def alarms_by_entity(self, since: float) -> Counter[str]:
        """Return the number of anomalies of each entity since a time in seconds."""
        return Counter(entity for noted, entity in self.alarming if noted >= since)

    @property
    def last_active(self) -> int | None:
        """The last second with a record, since 1970; None without any."""
        return self._seconds[-1].time if self._seconds else None

    def since(self, moment: int) -> Iterator[Second]:
        """Yield the seconds with activity from `moment` on, the last one first."""
        return takewhile(lambda second: second.time >= moment, reversed(self._seconds))

    def _add_incident(self, event: dict[str, Any], now: float) -> None:
        self.incidents.add(event, now)
        if "entity" in event:
            self.rows_of(event["entity"])

    def _second(self, now: int) -> Second:
        while self._seconds and self._seconds[-1].time > now:
            self._seconds.pop()
        if not self._seconds or self._seconds[-1].time < now:
            self._seconds.append(Second(now))
        return self._seconds[-1]


def merged(parts: Iterable[History], since: int, until: int) -> list[Second]:
    """Return each second from `since` to before `until`, summed over several partitions."""
    seconds = [Second(moment) for moment in range(since, until)]
    for part in parts:
        for second in part.since(since):
            if second.time < until:
                seconds[second.time - since].merge(second)
    return seconds


def _small(message: OutMessage, block: ProcessedBlock) -> OutMessage:
    """Return an anomaly message; that of a large record without the record."""
    if len(message.value or b"") <= _MAX_ANOMALY_BYTES:
        return message
    return next(score for score in block.scores if score.offset == message.offset)
