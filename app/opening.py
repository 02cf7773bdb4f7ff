"""With what state a partition goes on: the one kept, a snapshot's, or none."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import Executor
from dataclasses import dataclass

from faust.types import TP

from faust_oslrau.learner.errors import StateError, StateVersionError

from .held_partition import HeldPartition, Send
from .keeper import Keeper
from .logs import at
from .metrics import Metrics
from .partition import PartitionPipeline
from .resume import PartitionLog, Resume, resume, resume_from
from .settings import Settings
from .snapshots import IncompatibleSnapshotError, Snapshot, SnapshotStore, StoredSnapshot

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Restored:
    """A pipeline from a snapshot of so many bytes, and where it goes on."""

    pipeline: PartitionPipeline
    resume: Resume
    offset: int
    size: int


class Opener:
    """Makes the partitions that a worker was given.

    Parameters
    ----------
    settings
        The worker's settings.
    store
        Where the snapshots are.
    compute
        The thread for the learner.
    send
        Sends what records led to.
    metrics
        Where everything is counted.
    """

    def __init__(
        self,
        settings: Settings,
        store: SnapshotStore,
        compute: Executor,
        send: Send,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._store = store
        self._compute = compute
        self._send = send
        self._metrics = metrics

    async def open(self, log: PartitionLog, kept: HeldPartition | None) -> HeldPartition:
        """Return the partition with the newest state that there is.

        Raises
        ------
        LostHistoryError
            The state does not fit the log, and the settings do not say to go on nevertheless.
        IncompatibleSnapshotError
            The snapshot was made with other settings.
        """
        restored = None
        if kept is None or kept.next_offset < (log.committed or 0):  # others went on with it
            restored = await self._restore(log)
        if kept is not None:
            behind = restored is not None and restored.offset > kept.next_offset
            if not behind and self._goes_on(kept, log):
                return kept
        return await (self._begin(log) if restored is None else self._held(log, restored))

    def _goes_on(self, kept: HeldPartition, log: PartitionLog) -> bool:
        found = resume_from(log, kept.start, kept.next_offset, self._settings, kept.topic_id)
        if found is not None:
            kept.go_on(found)
            kept.skip_to(log.first)
        return found is not None

    async def _restore(self, log: PartitionLog) -> _Restored | None:
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
                place = (*log.tp, restored.offset, restored.size, seconds)
                about = at(log.tp, restored.offset)
                logger.info(
                    "%s/%d: snapshot at %d, %d bytes, restored in %.2f s", *place, extra=about
                )
                return restored
        return None

    async def _read(self, log: PartitionLog, stored: StoredSnapshot) -> _Restored | None:
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
        return _Restored(pipeline, found, snapshot.next_offset, len(stored.data))

    async def _held(self, log: PartitionLog, restored: _Restored) -> HeldPartition:
        partition = self._hold(log, restored.pipeline, restored.resume)
        partition.keeper.note(restored.offset, restored.size)
        partition.skip_to(log.first)
        await partition.measure_network(restored=True)
        return partition

    async def _begin(self, log: PartitionLog) -> HeldPartition:
        found = resume(log, self._settings)
        # Any that are left belong to another history.
        await self._store.discard(log.tp)
        pipeline = PartitionPipeline(*log.tp, self._settings)
        return self._hold(log, pipeline, found)

    def _hold(self, log: PartitionLog, pipeline: PartitionPipeline, found: Resume) -> HeldPartition:
        metrics = self._metrics.of_partition(*log.tp)
        keeper = Keeper(log.tp, found.start, self._store, self._settings, metrics)
        return HeldPartition(log.tp, pipeline, found, self._compute, self._send, metrics, keeper)


def _of_another_version(tp: TP, stored: StoredSnapshot, error: Exception) -> Exception:
    # Not left out like a damaged one: a new model would be learned over one that is whole.
    return IncompatibleSnapshotError(
        f"the snapshot of {tp.topic}/{tp.partition} at offset {stored.next_offset} is of another "
        f"version, {error}: go back to that version, begin anew with another app_id, or forget "
        "the model with `faust-oslrau inspect --forget`"
    )
