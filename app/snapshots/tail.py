"""Reads the end of one partition of the snapshots topic."""

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

# A manifest is the last record of its transaction. So it is among the last few of the log, unless
# other deployments or source topics write to the same partition.
_FIRST_WINDOW = 8
_FETCH_MILLISECONDS = 500
# How long a fetch of existing records may return nothing before it counts as failed.
_FETCH_TIMEOUT_SECONDS = 30.0
_STOP_SECONDS = 2.0


class TailReader:
    """A read_committed consumer of one partition; use it as an async context manager."""

    def __init__(self, topic: str, partition: int, client_arguments: Mapping[str, Any]) -> None:
        self._tp = TopicPartition(topic, partition)
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
        self._consumer.assign([self._tp])
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
        # Not awaited directly: aiokafka's consumer is cancelled if it stops right after its start.
        await asyncio.wait({stopping}, timeout=_STOP_SECONDS)
        stopping.cancel()

    async def slots(self, prefix: str) -> Slots:
        """Return the slots of a source partition."""
        first = (await self._consumer.beginning_offsets([self._tp]))[self._tp]
        high = (await self._consumer.end_offsets([self._tp]))[self._tp]
        window = _FIRST_WINDOW
        while high > first:
            low = max(first, high - window)
            last = await self._last_manifest(prefix, low, high)
            if last is not None:
                return await self._both(prefix, *last)
            high, window = low, 8 * window
        return Slots()

    async def chunks(self, manifest: Manifest, prefix: str, slot: int) -> bytes | None:
        """Return a snapshot's bytes; None if they do not match the manifest."""
        if not manifest.chunks:
            return None
        keys = set(chunk_keys(prefix, slot, len(manifest.chunks)))
        chunks: dict[int, bytes] = {}
        async for record in self._records(manifest.chunks[0], manifest.chunks[-1] + 1):
            if record.key in keys and record.value is not None:
                chunks[record.offset] = record.value
        data = b"".join(chunks.get(offset, b"") for offset in manifest.chunks)
        return data if manifest.matches(data) else None

    async def _last_manifest(
        self, prefix: str, low: int, high: int
    ) -> tuple[int, Manifest | None] | None:
        """Return the last slot written from `low` to before `high`, with its manifest.

        The manifest is None for a tombstone; the result is None if no slot was written.
        """
        slots = manifest_keys(prefix)
        last: tuple[int, Manifest | None] | None = None
        async for record in self._records(low, high):
            if record.key in slots:
                try:
                    last = slots[record.key], _manifest(record)
                except StateError as error:
                    tp = (record.topic, record.partition)
                    values = (*tp, record.offset, error)
                    extra = at(tp, record.offset)
                    logger.error("manifest %s/%d at %d is damaged: %s", *values, extra=extra)
        return last

    async def _both(self, prefix: str, slot: int, manifest: Manifest | None) -> Slots:
        """Return the slot of the last manifest, and the other slot if it holds a snapshot."""
        slots = Slots()
        if manifest is None:  # a tombstone: all snapshots were discarded
            return slots
        slots.record(slot, manifest)
        if manifest.previous is not None:
            other = await self._last_manifest(prefix, manifest.previous, manifest.previous + 1)
            if other is not None and other[1] is not None:
                slots.record(other[0], other[1])
        return slots

    async def _records(self, low: int, high: int) -> AsyncIterator[Any]:
        """Yield the committed records from offset `low` to before `high`."""
        self._consumer.seek(self._tp, low)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FETCH_TIMEOUT_SECONDS
        while await self._consumer.position(self._tp) < high:
            fetched = await self._consumer.getmany(self._tp, timeout_ms=_FETCH_MILLISECONDS)
            for record in fetched.get(self._tp, []):
                if record.offset < high:
                    yield record
            if fetched:
                deadline = loop.time() + _FETCH_TIMEOUT_SECONDS
            elif loop.time() > deadline:
                raise SnapshotError(f"{self._tp} returns no records from {low} to {high}")


def _manifest(record: Any) -> Manifest | None:
    """Decode a manifest; None for a tombstone."""
    if record.value is None:
        return None
    return Manifest.from_record(record.value, record.offset, record.timestamp)
