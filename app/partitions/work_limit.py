"""Bounds the batches in work, and with them a worker's memory."""

from __future__ import annotations

import asyncio


class WorkLimit:
    """Bounds the number of batches in work, and that of their records.

    Many small batches of different partitions may be in work at once, or a few large ones. A batch
    of more records than `records` is in work alone.
    """

    def __init__(self, batches: int, records: int) -> None:
        self._most_batches, self._most_records = batches, records
        self._batches = self._records = 0
        self._ended = asyncio.Event()

    async def begin(self, records: int) -> None:
        """Wait until there is room for a batch; to be called by one task only."""
        while not self._has_room(records):
            self._ended.clear()
            await self._ended.wait()
        self._batches += 1
        self._records += records

    def end(self, records: int) -> None:
        """Make room after a batch."""
        self._batches -= 1
        self._records -= records
        self._ended.set()

    def _has_room(self, records: int) -> bool:
        if self._batches == 0:
            return True
        return self._batches < self._most_batches and self._records + records <= self._most_records
