"""Reads incidents of a partition from the anomalies topic, for the page."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson
from aiokafka.errors import KafkaError
from faust.types import TP

from faust_oslrau.app.kafka.partition_reader import PartitionReader
from faust_oslrau.app.kafka.rights import reason
from faust_oslrau.app.logs import at
from faust_oslrau.app.metrics.last_incidents import INCIDENTS
from faust_oslrau.app.registry import MessageSchemas, RegistryError
from faust_oslrau.app.settings import Settings
from faust_oslrau.learner.scoring.incident import CLOSED

logger = logging.getLogger(__name__)

# Messages are read backwards in stretches of so many, up to so many bytes.
_STRETCH = 500
_MAX_BYTES = 8 * 1024 * 1024
# A page without past incidents is no reason to wait longer.
_SECONDS = 20.0
# A person waits.
_FIND_SECONDS = 5.0


class PastIncidents:
    """The incidents that the anomalies topic tells of.

    Parameters
    ----------
    settings
        The worker's settings.
    client_arguments
        Connection arguments of aiokafka's clients.
    """

    def __init__(self, settings: Settings, client_arguments: Mapping[str, Any]) -> None:
        self._topic = settings.anomalies_topic
        self._arguments = client_arguments
        self._schemas = MessageSchemas(settings)

    async def read(self, tp: TP) -> list[dict[str, Any]]:
        """Return the last events of a source partition, in no particular order.

        Nothing depends on them but the page: they are few or none if the topic cannot be read.
        """
        events: list[dict[str, Any]] = []
        seen = set[str]()
        began = time.perf_counter()
        try:
            async with asyncio.timeout(_SECONDS), aclosing(self._stretches(tp)) as stretches:
                async for found in stretches:
                    events += found
                    seen.update(event["incident"] for event in found)
                    if len(seen) >= INCIDENTS:
                        break
        except (KafkaError, RegistryError, OSError) as error:  # a TimeoutError is an OSError
            logger.warning(
                "%s/%d: the page begins without earlier incidents, %s cannot be read: %s",
                *(*tp, self._topic, reason(error, "Read", self._topic)),
                extra=at(tp),
            )
        seconds = time.perf_counter() - began
        logger.debug("%s/%d: %d events of incidents in %.2f s", *tp, len(events), seconds)
        return events

    async def find(self, tp: TP, incident: str, opened: int) -> dict[str, Any] | None:
        """Return the latest known event of an incident, which opened at an offset of its source.

        None if there is none. Of one that is open for very long it may be an earlier event.

        Raises
        ------
        KafkaError, RegistryError, OSError
            The topic cannot be read.
        """
        latest, room = None, _MAX_BYTES
        reader = PartitionReader(self._topic, tp.partition, self._arguments)
        async with asyncio.timeout(_FIND_SECONDS), reader:
            first, high = await reader.range() if await reader.exists() else (0, 0)
            at = await self._search(reader, tp, opened, first, high)
            async for value in self._values(reader, at, high):
                event = _event(value, tp)
                if event is not None and event["incident"] == incident:
                    latest = event
                room -= len(value or b"")
                if room < 0 or (latest is not None and latest["state"] == CLOSED):
                    break
        return latest

    async def _search(
        self, reader: PartitionReader, tp: TP, opened: int, first: int, high: int
    ) -> int:
        """Return where messages of records from a source offset on begin, which are nearly sorted.

        Those that are written again after a crash are sorted, too.
        """
        while first < high:
            middle = (first + high) // 2
            async for value in self._values(reader, middle, high):
                offset = _source_offset(value, tp)
                if offset is not None:
                    break
            else:
                offset = opened  # none is of this source from here on
            first, high = (middle + 1, high) if offset < opened else (first, middle)
        return first

    async def _values(
        self, reader: PartitionReader, low: int, high: int
    ) -> AsyncGenerator[bytes | None, None]:
        async for record in reader.records(low, high):
            yield (await self._schemas.read(record)).value

    async def aclose(self) -> None:
        """Disconnect from the registry."""
        await self._schemas.aclose()

    async def _stretches(self, tp: TP) -> AsyncGenerator[list[dict[str, Any]], None]:
        """Yield the events of a source partition's incidents, those of the last stretch first."""
        async with PartitionReader(self._topic, tp.partition, self._arguments) as reader:
            first, high = await reader.range() if await reader.exists() else (0, 0)
            room = _MAX_BYTES
            while high > first and room > 0:
                low, events = max(first, high - _STRETCH), []
                async for value in self._values(reader, low, high):
                    room -= len(value or b"")
                    event = _event(value, tp)
                    if event is not None:
                        events.append(event)
                yield events
                high = low


def _source_offset(value: bytes | None, tp: TP) -> int | None:
    """Return the offset of the record that a message is about; None for that of another source."""
    try:
        told = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None
    is_own = isinstance(told, dict) and (told.get("topic"), told.get("partition")) == tp
    return told["offset"] if is_own and isinstance(told.get("offset"), int) else None


def _event(value: bytes | None, tp: TP) -> dict[str, Any] | None:
    """Return the event of an incident of a source partition; None for any other message."""
    if value is None or b'"incident"' not in value:
        return None
    try:
        event = orjson.loads(value)
        orjson.dumps(event)  # deeply nested messages can be read, but not written again
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    return event if _is_event(event, tp) else None


def _is_event(event: Any, tp: TP) -> bool:
    """Return whether this is what a worker writes: other programs may write to the topic, too."""
    return (
        isinstance(event, dict)
        and event.get("event") == "incident"
        and (event.get("topic"), event.get("partition")) == tp
        and isinstance(event.get("incident"), str)
        and isinstance(event.get("state"), str)
        and isinstance(event.get("offset"), int)
        and isinstance(event.get("opened_timestamp", ""), int | None)
        and isinstance(event.get("contributions", []), list)
        and all(isinstance(blamed, dict) for blamed in event.get("contributions", []))
    )
