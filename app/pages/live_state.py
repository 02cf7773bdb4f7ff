"""The data that the page at `/` requests every second."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from faust_oslrau.app.metrics.history import SECONDS, History, Noted, merged
from faust_oslrau.app.partitions.held_partition import HeldPartition
from faust_oslrau.app.partitions.runtime import Runtime

from . import health

_STARTED = int(time.time())
_COUNTS = ("scored", "rejected", "replayed", "anomalies")


def live_state(
    runtime: Runtime, waiting_for: str | None, chosen: Sequence[HeldPartition], since: int
) -> dict[str, Any]:
    """Return what a worker waits for and has, and what `chosen` partitions did since a moment.

    `since` are seconds since 1970, as the last answer's `until` gave them, or 0 for all that is
    known. NaN stands for what is not known.
    """
    until = int(time.time())
    begin = min(max(since, until - SECONDS, _STARTED), until)
    return {
        "app_id": runtime.settings.app_id,
        "version": version("faust-oslrau"),
        "since": begin,
        "until": until,
        "waiting_for": waiting_for,
        "alarm_rate": runtime.settings.alarm_rate,
        "partitions": health.models(runtime)["partitions"],
        "seconds": _columns([partition.metrics.history for partition in chosen], begin, until),
        "anomalies": _between(begin, until, [p.metrics.history.anomalies for p in chosen]),
        "events": _between(begin, until, [p.metrics.history.events for p in chosen]),
    }


def _columns(parts: Sequence[History], since: int, until: int) -> dict[str, list[Any]]:
    """Return one entry a second, by quantity; None where there is no such thing."""
    seconds = merged(parts, since, until)
    quantiles = [second.quantiles(0.05, 0.5, 0.95) for second in seconds]
    return {
        **{name: [getattr(second, name) for second in seconds] for name in _COUNTS},
        **{name: [row[i] for row in quantiles] for i, name in enumerate(("low", "median", "high"))},
        "lowest": [second.lowest for second in seconds],
        "lag": _lags(parts, np.arange(since, until)),
    }


def _lags(parts: Sequence[History], moments: NDArray[np.int64]) -> list[float]:
    """Return how many records waited for all parts together, NaN where it is not known of one."""
    known = np.array([part.lag_at(moments) for part in parts] or [np.full(len(moments), np.nan)])
    lags: list[float] = known.sum(axis=0).tolist()
    return lags


def _between(since: int, until: int, parts: Sequence[Iterable[Noted]]) -> list[orjson.Fragment]:
    """Return what was noted in a stretch of time, oldest first."""
    noted = [found for part in parts for found in part if since <= found.noted < until]
    return [_content(found) for found in sorted(noted, key=lambda found: found.noted)]


def _content(found: Noted) -> orjson.Fragment:
    """Return the message as it stands: what its record holds may be beyond a parser."""
    key, value = found.message.key, found.message.value
    text = None if key is None else key.decode(errors="replace")
    noted = orjson.dumps({"noted": found.noted, "key": text})
    return orjson.Fragment(noted if value is None else noted[:-1] + b"," + value[1:])
