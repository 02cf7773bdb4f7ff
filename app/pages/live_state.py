"""The data that the page at `/` requests every second."""

from __future__ import annotations

import heapq
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import chain, islice, takewhile
from operator import attrgetter, itemgetter
from typing import Any

import orjson

from faust_oslrau.app.metrics.history import ANOMALIES, SECONDS, History, Noted
from faust_oslrau.app.metrics.last_incidents import most_urgent
from faust_oslrau.app.partitions.held_partition import HeldPartition
from faust_oslrau.app.partitions.runtime import Runtime
from faust_oslrau.learner import ChangedRate, SilentEntity
from faust_oslrau.learner.stream import WARM_UP

from .live_columns import LiveColumns

_BEGAN = time.monotonic()
# Of all partitions together. The page shows six anomalies, and drift events as marks in a chart.
_ANOMALY_BYTES = 256 * 1024
_INCIDENT_BYTES = 256 * 1024
_INCIDENTS = 200
_EVENTS = 100
_ENTITIES = 10
# Choices of partitions whose seconds are remembered; those of others are computed anew.
_CHOICES = 64


class LiveState:
    """What a worker waits for and has, and what its partitions did since a moment.

    Parameters
    ----------
    runtime
        The worker.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._columns: dict[tuple[object, ...], LiveColumns] = {}

    async def since(
        self, moment: int, chosen: Sequence[HeldPartition], waiting_for: str | None
    ) -> dict[str, Any]:
        """Return the state, with what `chosen` partitions did since a moment.

        The moment are seconds since 1970, as the last answer's `until` gave them, or 0 for all that
        is known. NaN stands for what is not known.
        """
        until = int(time.time())
        known = min(SECONDS, int(time.monotonic() - _BEGAN))
        since = min(max(moment, until - known), until)
        settings, parts = self._runtime.settings, [p.metrics.history for p in chosen]
        seconds = await self._columns_of(chosen).between(since, until)
        anomalies = _latest([part.anomalies for part in parts], since, until)
        events = _latest([part.events for part in parts], since, until)
        return {
            "app_id": settings.app_id,
            "version": version("faust-oslrau"),
            "since": since,
            "until": until,
            "waiting_for": waiting_for,
            "alarm_rate": settings.alarm_rate,
            "partitions": self._sizes(),
            "seconds": seconds,
            "anomalies": _contents(islice(anomalies, ANOMALIES), _ANOMALY_BYTES),
            "events": _contents(islice(events, _EVENTS), _ANOMALY_BYTES),
            "incidents": _incidents(parts, moment, until),
            "entity": settings.entity,
            "entities": None if settings.entity is None else _entities(chosen, since, until),
            "silent": await _earliest(
                chosen, lambda held: held.silent_entities(_ENTITIES), "last_timestamp"
            )
            if settings.entity and settings.silences
            else None,
            "rates": await _earliest(chosen, lambda held: held.changed_rates(_ENTITIES), "since")
            if settings.rates
            else None,
        }

    def _sizes(self) -> list[dict[str, Any]]:
        """Return how much each partition has learned; `/model` says more."""
        held = self._runtime.assignment.held if self._runtime.assignment else {}
        return [_size(held[tp]) for tp in sorted(held)]

    def _columns_of(self, chosen: Sequence[HeldPartition]) -> LiveColumns:
        choice = tuple(partition.tp for partition in chosen)
        parts = tuple(partition.metrics.history for partition in chosen)
        found = self._columns.pop(choice, None)
        if found is None or found.parts != parts:
            found = LiveColumns(parts)
        self._columns[choice] = found  # the last one is the last that will be forgotten
        if len(self._columns) > _CHOICES:
            del self._columns[next(iter(self._columns))]
        return found


def _size(partition: HeldPartition) -> dict[str, Any]:
    network, learner = partition.network, partition.pipeline.learner
    return {
        "topic": partition.tp.topic,
        "partition": partition.tp.partition,
        "learned": learner.n_records_ if learner else 0,
        "nodes": sum(network.nodes.values()) if network else 0,
        "warm_up_left": max(0, WARM_UP - partition.pipeline.n_records),
        "last_active": partition.metrics.history.last_active,
    }


def _entities(
    chosen: Sequence[HeldPartition], since: int, until: int
) -> dict[str, list[dict[str, Any]] | list[orjson.Fragment]]:
    """Return the entities that alarm most in the last minutes, and news of unusual ones."""
    alarms = [
        {"topic": held.tp.topic, "partition": held.tp.partition, "entity": name, "anomalies": n}
        for held in chosen
        for name, n in held.metrics.history.alarms_by_entity(until - SECONDS).items()
    ]
    events = _latest([held.metrics.history.entity_events for held in chosen], since, until)
    return {
        "alarming": heapq.nlargest(_ENTITIES, alarms, key=itemgetter("anomalies")),
        "events": _contents(islice(events, _EVENTS), _ANOMALY_BYTES),
    }


async def _earliest(
    chosen: Sequence[HeldPartition],
    asked: Callable[[HeldPartition], Awaitable[Sequence[SilentEntity | ChangedRate]]],
    since: str,
) -> list[dict[str, Any]]:
    """Return what the partitions tell when `asked`, what is so for longest first."""
    found = [held.tp._asdict() | each._asdict() for held in chosen for each in await asked(held)]
    return heapq.nsmallest(_ENTITIES, found, key=itemgetter(since))


def _latest(parts: Iterable[Sequence[Noted]], since: int, until: int) -> Iterator[Noted]:
    """Yield what was noted in a stretch of time, the last first."""
    noted = attrgetter("noted")
    newest = heapq.merge(*map(reversed, parts), key=noted, reverse=True)
    return (
        found
        for found in takewhile(lambda each: each.noted >= since, newest)
        if noted(found) < until
    )


def _incidents(parts: Iterable[History], since: int, until: int) -> list[orjson.Fragment]:
    """Return the incidents of which there is news, the most urgent first, as many as fit.

    All of them are news to who knows none, also those noted before the clock was set back.
    """
    found = chain.from_iterable(part.incidents for part in parts)
    news = [incident for incident in found if since <= 0 or since <= incident.noted < until]
    room, contents = _INCIDENT_BYTES, []
    for incident in most_urgent(news, _INCIDENTS):
        contents.append(orjson.Fragment(incident.as_json()))
        room -= len(incident.content)
        if room < 0:
            break
    return contents


def _contents(latest: Iterable[Noted], most_bytes: int) -> list[orjson.Fragment]:
    """Return the messages as they stand, the oldest first, as many as fit."""
    found: list[bytes] = []
    for noted in latest:
        content = _content(noted)
        most_bytes -= len(content)
        if most_bytes < 0:
            break
        found.append(content)
    return [orjson.Fragment(content) for content in reversed(found)]


def _content(found: Noted) -> bytes:
    """Return the message as it stands: what its record holds may be beyond a parser."""
    key, value = found.message.key, found.message.value
    text = None if key is None else key.decode(errors="replace")
    noted = orjson.dumps({"noted": found.noted, "key": text})
    return noted if value is None else noted[:-1] + b"," + value[1:]
