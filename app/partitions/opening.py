"""Finds the state from which a partition continues: parked, from a snapshot, or new."""

from __future__ import annotations

import logging
import time
from contextlib import aclosing
from dataclasses import dataclass, replace

from faust.types import TP

from faust_oslrau.app.kafka.positions import PartitionLog
from faust_oslrau.app.logs import at
from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.pipeline import (
    Change,
    IncompatibleSnapshotError,
    PartitionPipeline,
    Snapshot,
    Successor,
    changes,
    continued,
    new_pipeline,
    settings_digest,
)
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import SnapshotError, SnapshotStore, StoredSnapshot
from faust_oslrau.learner.errors import StateError, StateVersionError

from .compute import Compute
from .held_partition import HeldPartition
from .resume import Resume, resume_from, resume_without_state

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A pipeline, and the offsets at which its partition continues.

    `snapshot` is the offset and the size in bytes of the snapshot from which the pipeline was
    restored; None for a new pipeline. If settings changed, `follows` is what becomes of it.
    """

    pipeline: PartitionPipeline
    resume: Resume
    snapshot: tuple[int, int] | None = None
    follows: Successor | Change | None = None


class Opener:
    """Finds the state from which each assigned partition continues.

    Parameters
    ----------
    settings
        The worker's settings.
    store
        Holds the snapshots.
    compute
        Runs what learners do.
    metrics
        Count damaged snapshots, and measure the time of a restore.
    """

    def __init__(
        self, settings: Settings, store: SnapshotStore, compute: Compute, metrics: Metrics
    ) -> None:
        self._settings = settings
        self._store = store
        self._compute = compute
        self._metrics = metrics

    async def find(
        self, log: PartitionLog, parked: HeldPartition | None
    ) -> HeldPartition | PartitionState:
        """Return the parked partition if it is the newest valid state, else a snapshot or new one.

        Raises
        ------
        LostHistoryError
            Records that the state needs are gone, and `lost_history` is "refuse".
        IncompatibleSnapshotError
            The snapshot was made by another version, or of records of another format.
        OtherModelError
            There is no snapshot, and the partition began with another initial model.
        """
        restored = None
        if parked is None or parked.next_offset < (log.committed or 0):  # another worker continued
            restored = await self._restore(log)
        if parked is not None and not _is_newer(restored, parked) and self._continues(parked, log):
            return parked
        if restored is None and parked is not None:  # a snapshot may be of this log
            restored = await self._restore(log)
        return await self._begin(log) if restored is None else restored

    def _continues(self, parked: HeldPartition, log: PartitionLog) -> bool:
        resume = resume_from(log, parked.start, parked.next_offset, self._settings, parked.topic_id)
        if resume is not None:
            parked.update_offsets(resume)
            parked.skip_deleted(log.first)
        return resume is not None

    async def _restore(self, log: PartitionLog) -> PartitionState | None:
        """Return the newest snapshot that is undamaged and belongs to this log."""
        began = time.perf_counter()
        async with aclosing(self._store.load(log.tp)) as snapshots:
            async for stored in snapshots:
                restored = await self._read_undamaged(log, stored)
                if restored is not None:
                    self._tell_restored(log.tp, stored, time.perf_counter() - began)
                    return restored
        return None

    def _tell_restored(self, tp: TP, stored: StoredSnapshot, seconds: float) -> None:
        self._metrics.of_partition(*tp).observe_stage("restore", seconds)
        logger.info(
            "%s/%d: snapshot at %d, %d bytes, restored in %.2f s",
            *(*tp, stored.next_offset, stored.data.size, seconds),
            extra=at(tp, stored.next_offset),
        )

    async def _read_undamaged(
        self, log: PartitionLog, stored: StoredSnapshot
    ) -> PartitionState | None:
        """Return a snapshot; None if it is of another log, or damaged: then it is rejected."""
        try:
            with stored.data:
                return await self._read(log, stored)
        except OSError as error:
            raise SnapshotError(f"snapshot {stored.where}: {error.strerror}") from error
        except StateVersionError as error:
            raise _of_another_version(log.tp, stored, error) from error
        except StateError as error:
            self._metrics.of_partition(*log.tp).count_snapshot_failure("damaged")
            logger.error("snapshot %s is damaged: %s", stored.where, error, extra=at(log.tp))
            await self._store.reject(log.tp, stored)
            return None

    async def _read(self, log: PartitionLog, stored: StoredSnapshot) -> PartitionState | None:
        snapshot, scorer, data = await self._compute.run(Snapshot.read, stored.data)
        if (snapshot.topic, snapshot.partition) != log.tp:
            raise StateError(f"expected a state of {log.tp}, got {snapshot.topic}")
        begun = None if data is None else (await self._compute.run(Snapshot.read, data))[:2]
        # The group's commit is newer than the snapshot: the successor may have taken over.
        has_followed = begun is not None and log.recorded == begun[0].start
        start = log.recorded if has_followed and log.recorded is not None else snapshot.start
        resume = resume_from(log, start, snapshot.next_offset, self._settings, snapshot.topic_id)
        if resume is None:
            return None
        resume = replace(resume, start=snapshot.start)
        begins = _changed_from(log, snapshot.next_offset, resume.emit_from, self._settings)
        pipeline, follows = await self._compute.run(
            continued, snapshot, scorer, begun, self._settings, begins
        )
        if follows is not None:
            _tell_change(log.tp, "; ".join(changes(snapshot, self._settings)), follows)
        size = stored.data.size
        return PartitionState(pipeline, resume, (snapshot.next_offset, size), follows)

    async def _begin(self, log: PartitionLog) -> PartitionState:
        resume = resume_without_state(log, self._settings)
        # The remaining snapshots belong to another log or start.
        await self._store.discard(log.tp)
        pipeline = await self._compute.run(new_pipeline, *log.tp, self._settings)
        return PartitionState(pipeline, resume)


def _tell_change(tp: TP, changed: str, follows: Successor | Change) -> None:
    if isinstance(follows, Change):
        logger.info(
            "%s/%d: %s: the model goes on with the new settings from offset %d on",
            *(*tp, changed, follows.offset),
            extra=at(tp, follows.offset),
        )
        return
    logger.warning(
        "%s/%d: %s: the model goes on as it was, until one with the new settings, from offset "
        "%d on, has learned %d more records; with the old settings again, it stays",
        *(*tp, changed, follows.start, follows.records_left),
        extra=at(tp, follows.start),
    )


def _changed_from(log: PartitionLog, read: int, emit_from: int, settings: Settings) -> int:
    """Return where changed settings begin after a snapshot that has read so far: where they began.

    Without them in the commit, at the first record without outputs.
    """
    recorded = log.recorded_successor
    has_begun = recorded is not None and recorded.settings == settings_digest(settings)
    return recorded.start if recorded and has_begun and recorded.start >= read else emit_from


def _is_newer(restored: PartitionState | None, parked: HeldPartition) -> bool:
    return restored is not None and (restored.pipeline.next_offset or 0) > parked.next_offset


def _of_another_version(tp: TP, stored: StoredSnapshot, error: Exception) -> Exception:
    # Not skipped like a damaged one: a new model would replace an undamaged one.
    return IncompatibleSnapshotError(
        f"the snapshot of {tp.topic}/{tp.partition} at offset {stored.next_offset} is from another "
        f"version, {error}: install that version again, start a new deployment with another "
        "app_id, or discard the model with `faust-oslrau inspect --forget`"
    )
