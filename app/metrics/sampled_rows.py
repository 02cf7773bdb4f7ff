"""One record of each of the last seconds of a partition, or an entity, for plots of its fields."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner import Forecast
from faust_oslrau.learner.entities.roster import stored

# Values of a partition: those of 300 records with up to 218 fields. Of wider ones, fewer are kept.
_MOST_VALUES = 65_536


class SampledRow(NamedTuple):
    """A record of a second.

    Attributes
    ----------
    time
        The second, since 1970 (UTC).
    values
        The values of its fields (d,); NaN = missing.
    p_value
        Its p-value, NaN without a model.
    is_anomaly
        Whether there was an anomaly in this second: then this is the most unusual record.
    key
        The entity of the record, a long key as its digest; None without one.
    band
        Quantiles (2, d) at 1 % and 99 % that were expected of its fields; None without forecasts.
    """

    time: int
    values: NDArray[np.float64]
    p_value: float
    is_anomaly: bool
    key: bytes | None = None
    band: NDArray[np.float64] | None = None


class SampledRows:
    """The sampled records of a partition.

    Parameters
    ----------
    seconds
        The most seconds that are retained.
    """

    def __init__(self, seconds: int) -> None:
        self._rows: deque[SampledRow] = deque(maxlen=seconds)

    def add(
        self,
        time: int,
        rows: NDArray[np.float64],
        p_value: NDArray[np.float64],
        *,
        has_anomalies: bool,
        keys: Sequence[bytes | None] = (),
        forecast: Forecast | None = None,
    ) -> None:
        """Add a block of records (m, d): the most unusual of a second's anomalies, or the first.

        `keys` are their entities, if they have some, `forecast` is what was expected of them.
        """
        if rows.size == 0:
            return
        while self._rows and self._rows[-1].time > time:  # the clock was set back
            self._rows.pop()
        is_new = not self._rows or self._rows[-1].time < time
        if not (is_new or has_anomalies):
            return
        at = int(np.nanargmin(p_value)) if has_anomalies else 0
        key = stored(keys[at]) if keys else None
        band = None if forecast is None else np.stack([forecast.low[at], forecast.high[at]])
        row = SampledRow(time, rows[at].copy(), float(p_value[at]), has_anomalies, key, band)
        if is_new:
            self._rows.append(row)
        elif _is_less_usual(row, self._rows[-1]):
            self._rows[-1] = row
        width = rows.shape[1] * (1 if band is None else 3)
        while len(self._rows) * width > _MOST_VALUES and len(self._rows) > 1:
            self._rows.popleft()

    def of(self, key: bytes, until: int) -> SampledRows:
        """Return those of an entity before a second."""
        found = SampledRows(self._rows.maxlen or 0)
        wanted = stored(key)
        found._rows.extend(row for row in self._rows if row.key == wanted and row.time < until)
        return found

    def between(self, since: int, until: int) -> Iterator[SampledRow]:
        """Yield the records from `since` to before `until`, the first one first."""
        return (row for row in self._rows if since <= row.time < until)


def _is_less_usual(row: SampledRow, other: SampledRow) -> bool:
    return not other.is_anomaly or row.p_value < other.p_value
