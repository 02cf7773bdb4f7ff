"""Reads the end of one partition of the snapshots topic."""

from __future__ import annotations

import logging
from typing import Any

from faust_oslrau.app.kafka.partition_reader import PartitionReader
from faust_oslrau.app.logs import at
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state import Extent

from .manifest import Manifest, Slots, chunk_keys, manifest_keys, new_checksum
from .spool import Spool

logger = logging.getLogger(__name__)

# A manifest is the last record of its transaction. So it is among the last few of the log, unless
# other deployments or source topics write to the same partition.
_FIRST_WINDOW = 8


class TailReader(PartitionReader):
    """Finds the snapshots of source partitions in one partition of the topic."""

    async def slots(self, prefix: str) -> Slots:
        """Return the slots of a source partition."""
        first, high = await self.range()
        window = _FIRST_WINDOW
        while high > first:
            low = max(first, high - window)
            last = await self._last_manifest(prefix, low, high)
            if last is not None:
                return await self._both(prefix, *last)
            high, window = low, 8 * window
        return Slots()

    async def chunks(self, manifest: Manifest, prefix: str, slot: int) -> Extent | None:
        """Return a snapshot's bytes; None if they do not match the manifest."""
        if not manifest.chunks:
            return None
        keys = set(chunk_keys(prefix, slot, len(manifest.chunks)))
        chunks, spool, checksum = set(manifest.chunks), Spool(manifest.size), new_checksum()
        async for record in self.records(manifest.chunks[0], manifest.chunks[-1] + 1):
            if record.offset in chunks and record.key in keys and record.value is not None:
                spool.add(record.value)
                checksum.update(record.value)
        if (spool.extent.size, checksum.hexdigest()) == (manifest.size, manifest.checksum):
            return spool.extent
        return None

    async def _last_manifest(
        self, prefix: str, low: int, high: int
    ) -> tuple[int, Manifest | None] | None:
        """Return the last slot written from `low` to before `high`, with its manifest.

        The manifest is None for a tombstone; the result is None if no slot was written.
        """
        slots = manifest_keys(prefix)
        last: tuple[int, Manifest | None] | None = None
        async for record in self.records(low, high):
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


def _manifest(record: Any) -> Manifest | None:
    """Decode a manifest; None for a tombstone."""
    if record.value is None:
        return None
    return Manifest.from_record(record.value, record.offset, record.timestamp)
