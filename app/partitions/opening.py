"""The state from which a partition continues: the parked one, a snapshot, or a new one."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import Executor
from dataclasses import dataclass

from faust.types import TP

from faust_oslrau.app.kafka.positions import PartitionLog
from faust_oslrau.app.logs import at
from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.pipeline import IncompatibleSnapshotError, PartitionPipeline, Snapshot
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import SnapshotStore, StoredSnapshot
from faust_oslrau.learner.errors import StateError, StateVersionError

from .held_partition import HeldPartition
from .resume import Resume, resume, resume_from

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A pipeline, and where its partition continues.

    `snapshot` is the offset and the size in bytes of the snapshot that it was restored from, None
    for a pipeline that begins.
    """

    pipeline: PartitionPipeline
    resume: Resume
    snapshot: tuple[int, int] | None = None


class Opener:
    """Finds the state from which each assigned partition continues.

    Parameters
    ----------
    settings
        The worker's settings.
    store
        Where the snapshots are.
    compute
        The learner's thread.
    metrics
        Counts damaged snapshots and times restores.
    """

    def __init__(
        self, settings: Settings, store: SnapshotStore, compute: Executor, metrics: Metrics
    ) -> None:
        self._settings = settings
        self._store = store
        self._compute = compute
        self._metrics = metrics

    async def find(
        self, log: PartitionLog, parked: HeldPartition | None
    ) -> HeldPartition | PartitionState:
        """Return the parked partition if it can continue, else the newest state that there is.

        Raises
        ------
        LostHistoryError
            The state does not fit the log, and the settings do not say to continue without it.
        IncompatibleSnapshotError
            The snapshot was made with other settings.
        """
        restored = None
        if parked is None or parked.next_offset < (log.committed or 0):  # another worker continued
            restored = await self._restore(log)
        if parked is not None and not _is_newer(restored, parked) and self._continues(parked, log):
            return parked
        return await self._begin(log) if restored is None else restored

    def _continues(self, parked: HeldPartition, log: PartitionLog) -> bool:
        found = resume_from(log, parked.start, parked.next_offset, self._settings, parked.topic_id)
        if found is not None:
            parked.update_offsets(found)
            parked.skip_deleted(log.first)
        return found is not None

    async def _restore(self, log: PartitionLog) -> PartitionState | None:
        """Return the newest snapshot that is whole and fits the log."""
        began = time.perf_counter()
        metrics = self._metrics.of_partition(*log.tp)
        async for stored in self._store.load(log.tp):
            try:
                restored = await self._read(log, stored)
            except StateVersionError as error:
                raise _of_another_version(log.tp, stored, error) from error
            except StateError as error:
                metrics.count_snapshot_failure("damaged")
                logger.error("snapshot %s is left out: %s", stored.where, error, extra=at(log.tp))
                await self._store.reject(log.tp, stored)
                continue
            if restored is not None:
                seconds = time.perf_counter() - began
                metrics.observe_stage("restore", seconds)
                place = (*log.tp, stored.next_offset, len(stored.data), seconds)
                logger.info(
                    "%s/%d: snapshot at %d, %d bytes, restored in %.2f s",
                    *place,
                    extra=at(log.tp, stored.next_offset),
                )
                return restored
        return None

    async def _read(self, log: PartitionLog, stored: StoredSnapshot) -> PartitionState | None:
        loop = asyncio.get_running_loop()
        snapshot = await loop.run_in_executor(self._compute, Snapshot.from_bytes, stored.data)
        if (snapshot.topic, snapshot.partition) != log.tp:
            raise StateError(f"expected a state of {log.tp}, got {snapshot.topic}")
        found = resume_from(
            log, snapshot.start, snapshot.next_offset, self._settings, snapshot.topic_id
        )
        if found is None:
            return None
        pipeline = await loop.run_in_executor(
            self._compute, PartitionPipeline.restored, snapshot, self._settings
        )
        return PartitionState(pipeline, found, (snapshot.next_offset, len(stored.data)))

    async def _begin(self, log: PartitionLog) -> PartitionState:
        found = resume(log, self._settings)
        # Snapshots that are left belong to another history.
        await self._store.discard(log.tp)
        return PartitionState(PartitionPipeline(*log.tp, self._settings), found)


def _is_newer(restored: PartitionState | None, parked: HeldPartition) -> bool:
    return restored is not None and (restored.pipeline.next_offset or 0) > parked.next_offset


def _of_another_version(tp: TP, stored: StoredSnapshot, error: Exception) -> Exception:
    # Not left out like a damaged one: a new model would be learned over one that is whole.
    return IncompatibleSnapshotError(
        f"the snapshot of {tp.topic}/{tp.partition} at offset {stored.next_offset} is of another "
        f"version, {error}: go back to that version, begin anew with another app_id, or forget "
        "the model with `faust-oslrau inspect --forget`"
    )
