"""Decides when the snapshots of a partition are due, and saves them."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import TYPE_CHECKING

from faust_oslrau.app import pace
from faust_oslrau.app.logs import at
from faust_oslrau.app.metrics import PartitionMetrics
from faust_oslrau.app.settings import Settings
from faust_oslrau.learner.state import Extent

from .store import SnapshotError, SnapshotStore

if TYPE_CHECKING:
    from faust.types import TP

logger = logging.getLogger(__name__)

# How long to wait before another attempt after the store has failed.
_RETRY_SECONDS = 10.0
# Large snapshots are saved less often: at most so many bytes per second and partition. A snapshot
# may hold 100,000 entities, of which few have changed.
_LARGE_BYTES = 10_000_000
_BYTES_PER_SECOND = 1_000_000


class SnapshotSchedule:
    """Saves the snapshots of one partition when they are due.

    Attributes
    ----------
    offset
        The offset of the last snapshot; before the first, that at which learning began.
    """

    def __init__(
        self,
        tp: TP,
        offset: int,
        store: SnapshotStore,
        settings: Settings,
        metrics: PartitionMetrics,
    ) -> None:
        self.offset = offset
        self._tp = tp
        self._store = store
        self._settings = settings
        self._metrics = metrics
        self._covered = time.monotonic()  # when a snapshot last held all processed records
        self._not_before = 0.0  # after a failure, or after a large snapshot
        self._saving = asyncio.Lock()

    def record(self, offset: int, size: int) -> None:
        """Record that the store holds a snapshot at an offset, of `size` bytes."""
        self.offset = offset
        self._covered = time.monotonic()
        if size > _LARGE_BYTES:
            self._not_before = self._covered + size / _BYTES_PER_SECOND
        self._metrics.set_snapshot(offset, size)

    def hurry(self) -> None:
        """Let a snapshot be due with the next record."""
        self._covered = -math.inf

    def is_due(self, next_offset: int) -> bool:
        """Tell whether a snapshot at this offset is due, by time or by the number of records."""
        now = time.monotonic()
        if self.offset == next_offset:
            self._covered = now
        self._metrics.snapshot_age = now - self._covered
        if self.offset == next_offset or now < self._not_before:
            return False
        records = next_offset - self.offset
        return (
            now - self._covered >= self._settings.snapshot_interval
            or records >= pace.SNAPSHOT_RECORDS
        )

    async def save(self, next_offset: int, data: Extent) -> None:
        """Save a snapshot unless there is a newer one; a failure is logged, and retried later.

        Raises
        ------
        LostPartitionError
            Another worker owns the partition.
        """
        async with self._saving:
            if next_offset <= self.offset:
                return
            try:
                await self._store.save(self._tp, next_offset, data)
            except SnapshotError as error:
                self._not_before = time.monotonic() + _RETRY_SECONDS
                self._metrics.count_snapshot_failure("save")
                logger.error(
                    "%s/%d: snapshot not saved, will retry: %s",
                    *(*self._tp, error),
                    extra=at(self._tp, next_offset),
                )
                return
            self.record(next_offset, data.size)
        values = (*self._tp, next_offset, data.size)
        extra = at(self._tp, next_offset)
        logger.debug("%s/%d: snapshot at %d, %d bytes", *values, extra=extra)
