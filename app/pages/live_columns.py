"""The last minutes of some partitions, second by second, each computed once when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from faust_oslrau.app.metrics.history import SECONDS, History, Second, merged

# Seconds of partitions that are merged at a time; between two times other work goes on.
_MERGED_AT_ONCE = 1000


class _Row(NamedTuple):
    """One second of all partitions; NaN or None stand for what is not known."""

    scored: int
    rejected: int
    replayed: int
    anomalies: int
    low: float | None
    median: float | None
    high: float | None
    lowest: float
    lag: float


class LiveColumns:
    """The seconds of some partitions.

    Parameters
    ----------
    parts
        The histories of the partitions.
    """

    def __init__(self, parts: Sequence[History]) -> None:
        self.parts = tuple(parts)
        self._rows: dict[int, _Row] = {}

    async def between(self, since: int, until: int) -> dict[str, list[float | None]]:
        """Return one entry a second by quantity; `until` is not later than now."""
        await self._compute(since, until)
        rows = [self._rows[second] for second in range(since, until)]
        columns = zip(*rows, strict=True) if rows else [()] * len(_Row._fields)
        return {name: list(column) for name, column in zip(_Row._fields, columns, strict=True)}

    async def _compute(self, since: int, until: int) -> None:
        self._rows = {s: row for s, row in self._rows.items() if until - SECONDS <= s < until}
        missing = [second for second in range(since, until) if second not in self._rows]
        step = max(1, _MERGED_AT_ONCE // max(1, len(self.parts)))
        while missing:
            begin = missing[0]
            end = min(begin + step, until)
            self._rows.update(self._computed(begin, end))
            missing = [second for second in missing if second >= end]
            await asyncio.sleep(0)

    def _computed(self, since: int, until: int) -> dict[int, _Row]:
        lags = self._lags(since, until)
        seconds = merged(self.parts, since, until)
        return {s.time: _row(s, lag) for s, lag in zip(seconds, lags, strict=True)}

    def _lags(self, since: int, until: int) -> list[float]:
        """Return how many records waited in all parts, NaN where it is not known of one."""
        moments = np.arange(since, until)
        unknown = np.full(len(moments), np.nan)
        known = np.array([part.lag_at(moments) for part in self.parts] or [unknown])
        lags: list[float] = known.sum(axis=0).tolist()
        return lags


def _row(second: Second, lag: float) -> _Row:
    low, median, high = second.quantiles(0.05, 0.5, 0.95)
    counts = (second.scored, second.rejected, second.replayed, second.anomalies)
    return _Row(*counts, low, median, high, second.lowest, lag)
