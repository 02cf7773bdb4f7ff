"""Reads the end of one partition of the snapshots' topic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from faust_oslrau.app.logs import at
from faust_oslrau.learner.errors import StateError

from .manifest import Manifest, Slots, chunk_keys, manifest_keys
from .store import SnapshotError

logger = logging.getLogger(__name__)

# A manifest is the last record of its transaction: one of the last few of the log, unless other
# deployments or source topics write to the same partition as well.
_FIRST_WINDOW = 8
_FETCH_MILLISECONDS = 500
# A log that gives nothing for so long, though it should, is looked at again later.
_PATIENCE_SECONDS = 30.0
_STOP_SECONDS = 2.0


class TailReader:
    """A consumer of committed records; use it as an async context manager."""

    def __init__(self, topic: str, partition: int, client_arguments: Mapping[str, Any]) -> None:
        self._place = TopicPartition(topic, partition)
        self._consumer = AIOKafkaConsumer(
            **client_arguments,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

    async def __aenter__(self) -> Self:
        """Connect."""
        try:
            await self._consumer.start()
        except BaseException:
            await self._stop()
            raise
        self._consumer.assign([self._place])
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Disconnect."""
        await self._stop()

    async def _stop(self) -> None:
        stopping = asyncio.create_task(self._consumer.stop())
        # Not awaited itself: stopped right after its start, aiokafka's consumer ends cancelled.
        await asyncio.wait({stopping}, timeout=_STOP_SECONDS)
        stopping.cancel()

    async def slots(self, prefix: str) -> Slots:
        """Return the slots of a source partition."""
        first = (await self._consumer.beginning_offsets([self._place]))[self._place]
        high = (await self._consumer.end_offsets([self._place]))[self._place]
        window = _FIRST_WINDOW
        while high > first:
            low = max(first, high - window)
            found = await self._last_manifest(prefix, low, high)
            if found is not None:
                return await self._both(prefix, *found)
            high, window = low, 8 * window
        return Slots()

    async def chunks(self, manifest: Manifest, prefix: str, slot: int) -> bytes | None:
        """Return a snapshot's bytes, None where they are not what the manifest says."""
        if not manifest.chunks:
            return None
        keys = set(chunk_keys(prefix, slot, len(manifest.chunks)))
        found: dict[int, bytes] = {}
        async for record in self._records(manifest.chunks[0], manifest.chunks[-1] + 1):
            if record.key in keys and record.value is not None:
                found[record.offset] = record.value
        data = b"".join(found.get(offset, b"") for offset in manifest.chunks)
        return data if manifest.is_of(data) else None

    async def _last_manifest(
        self, prefix: str, low: int, high: int
    ) -> tuple[int, Manifest | None] | None:
        """Return the last slot that was written between two offsets, None for a tombstone."""
        slots = manifest_keys(prefix)
        last: tuple[int, Manifest | None] | None = None
        async for record in self._records(low, high):
            if record.key in slots:
                try:
                    last = slots[record.key], _manifest(record)
                except StateError as error:
                    place = (record.topic, record.partition, record.offset)
                    about = at(place[:2], record.offset)
                    logger.error("%s/%d at %d is left out: %s", *place, error, extra=about)
        return last

    async def _both(self, prefix: str, slot: int, manifest: Manifest | None) -> Slots:
        found = Slots()
        if manifest is None:  # a tombstone: all were discarded
            return found
        found.note(slot, manifest)
        if manifest.previous is not None:
            at = manifest.previous
            other = await self._last_manifest(prefix, at, at + 1)
            if other is not None and other[1] is not None:
                found.note(other[0], other[1])
        return found

    async def _records(self, low: int, high: int) -> AsyncIterator[Any]:
        """Yield the committed records from one offset to before another."""
        self._consumer.seek(self._place, low)
        loop = asyncio.get_running_loop()
        patience = loop.time() + _PATIENCE_SECONDS
        while await self._consumer.position(self._place) < high:
            found = await self._consumer.getmany(self._place, timeout_ms=_FETCH_MILLISECONDS)
            for record in found.get(self._place, []):
                if record.offset < high:
                    yield record
            if found:
                patience = loop.time() + _PATIENCE_SECONDS
            elif loop.time() > patience:
                raise SnapshotError(f"{self._place} gives no records from {low} to {high}")


def _manifest(record: Any) -> Manifest | None:
    """Read a manifest, None from a tombstone."""
    if record.value is None:
        return None
    return Manifest.from_record(record.value, record.offset, record.timestamp)
