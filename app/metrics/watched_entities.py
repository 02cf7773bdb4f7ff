"""The records of entities that have incidents or are looked at, and the last ones of all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.app.pipeline import ProcessedBlock
from faust_oslrau.learner import Forecast
from faust_oslrau.learner.entities.roster import stored
from faust_oslrau.learner.keys import entity_name

from .sampled_rows import SampledRows

# Most entities of a partition at a time.
_MOST = 8
# The last records of all entities have so many values, those of 4,096 records with 16 fields, and
# come from so many blocks: each takes a kilobyte, even of one record.
_MOST_VALUES = 65_536
_MOST_BLOCKS = 512


class Records(NamedTuple):
    """Records of a block (m, d), and what the page shows of them.

    Attributes
    ----------
    time
        The second of their acknowledgement, since 1970 (UTC).
    keys
        Their entities, long keys as digests: a thousand keys of a megabyte fill the memory.
    alarming
        Names of the entities with anomalies among them.
    """

    time: int
    rows: NDArray[np.float64]
    p_value: NDArray[np.float64]
    keys: Sequence[bytes | None]
    forecast: Forecast | None
    alarming: frozenset[str]

    @classmethod
    def of(cls, now: int, block: ProcessedBlock) -> Records:
        """Return the last records of a block."""
        m, d = block.rows.shape
        first = max(0, m - _MOST_VALUES // max(d, 1))
        keys = [*map(stored, block.keys)]
        records = cls(
            now, block.rows, block.p_value, keys, block.forecast, frozenset(block.alarming)
        )
        return records if first == 0 else records.some(np.arange(first, m))

    def some(self, at: NDArray[np.intp]) -> Records:
        """Return copies of the records at some places."""
        forecast = self.forecast
        if forecast is not None:
            forecast = Forecast(*(part[at] for part in forecast))
        keys = [self.keys[i] for i in at.tolist()]
        return self._replace(
            rows=self.rows[at], p_value=self.p_value[at], keys=keys, forecast=forecast
        )

    def of_entities(self, names: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return where those of some entities are."""
        found: dict[bytes, list[int]] = {name: [] for name in names}
        places: dict[bytes | None, list[int]] = {stored(name): at for name, at in found.items()}
        for i, key in enumerate(self.keys):
            if key in places:
                places[key].append(i)
        return found

    def add_to(self, kept: SampledRows, key: bytes, at: Sequence[int]) -> None:
        """Add those of an entity, which are at these places, to its others."""
        own = self.some(np.array(at, np.intp))
        has_anomalies = len(at) > 0 and entity_name(key) in self.alarming
        kept.add(
            self.time, own.rows, own.p_value, has_anomalies=has_anomalies, forecast=own.forecast
        )


class WatchedEntities:
    """One record of each second of the entities that were asked for last.

    Parameters
    ----------
    seconds
        The most seconds that are retained, and for how long an entity is watched after it was asked
        for.
    """

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._rows: dict[bytes, SampledRows] = {}
        self._asked: dict[bytes, int] = {}
        self._last: deque[Records] = deque()
        self._values = 0  # of the last records

    def watch(self, key: bytes, now: int, sampled: SampledRows) -> SampledRows:
        """Return the records of an entity since it is watched, and watch it on.

        Before, they are those among the last records of its partition, and before these, among the
        `sampled` ones.
        """
        if key not in self._rows:
            if len(self._rows) == _MOST:
                self._forget(min(self._asked, key=self._asked.__getitem__))
            self._rows[key] = self._earlier(key, now, sampled)
        self._asked[key] = now
        return self._rows[key]

    def add(self, now: int, block: ProcessedBlock) -> None:
        """Add the records of a block."""
        if len(block.keys) == 0:
            return
        records = Records.of(now, block)
        self._keep(records)
        for key, asked in list(self._asked.items()):
            if now - asked > self._seconds:
                self._forget(key)
        for key, at in records.of_entities(self._rows).items():
            records.add_to(self._rows[key], key, at)

    def _keep(self, records: Records) -> None:
        self._last.append(records)
        self._values += records.rows.size
        while len(self._last) > _MOST_BLOCKS or self._values > max(_MOST_VALUES, records.rows.size):
            self._values -= self._last.popleft().rows.size

    def _earlier(self, key: bytes, now: int, sampled: SampledRows) -> SampledRows:
        """Return what is known of an entity when it is chosen."""
        found = sampled.of(key, until=self._last[0].time if self._last else now + 1)
        for records in self._last:
            records.add_to(found, key, records.of_entities([key])[key])
        return found

    def _forget(self, key: bytes) -> None:
        del self._rows[key], self._asked[key]
