"""Bounds the batches in work, and with them a worker's memory."""

from __future__ import annotations

import asyncio


class WorkLimit:
    """Bounds the number of batches in work, and that of their records.

    Many small batches of different partitions may be in work at once, or a few large ones. A batch
    of more records than `records` is in work alone.
    """

    def __init__(self, batches: int, records: int) -> None:
        self._limit = records
        self._records = 0
        self._slots = asyncio.Semaphore(batches)
        self._ended = asyncio.Event()

    async def begin(self, records: int) -> None:
        """Wait until there is room for a batch; to be called by one task only."""
        await self._slots.acquire()
        while self._records > 0 and self._records + records > self._limit:
            self._ended.clear()
            await self._ended.wait()
        self._records += records

    def end(self, records: int) -> None:
        """Make room after a batch."""
        self._records -= records
        self._ended.set()
        self._slots.release()
