"""One partition that this worker holds: its pipeline, its offsets and its snapshots."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import pairwise
from operator import attrgetter
from typing import Protocol

import numpy as np
from aiokafka import OffsetAndMetadata
from faust.types import TP
from numpy.typing import NDArray

from faust_oslrau.app import pace
from faust_oslrau.app.kafka.batches import RecordBatch
from faust_oslrau.app.kafka.positions import start_metadata
from faust_oslrau.app.logs import at
from faust_oslrau.app.metrics import NetworkSize, PartitionMetrics
from faust_oslrau.app.pipeline import (
    Change,
    PartitionPipeline,
    ProcessedBlock,
    Successor,
)
from faust_oslrau.app.snapshots import SnapshotSchedule, spooled
from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.state import Extent
from faust_oslrau.topics import KafkaRecord, OutMessage

from .compute import Compute
from .field_log import FieldLog
from .following import Following
from .partition_queries import PartitionQueries
from .rejection_log import RejectionLog
from .resume import Resume

logger = logging.getLogger(__name__)


class Send(Protocol):
    """Sends the outputs of a block."""

    async def __call__(self, tp: TP, block: ProcessedBlock, position: OffsetAndMetadata) -> None:
        """Send the outputs, and return when the broker has acknowledged them.

        `position` is the offset to commit: that after the block's last record.
        """


class OutOfPlaceError(Exception):
    """A batch does not continue at the next offset, as a batch before it was dropped."""


class UnknownSchemasError(Exception):
    """The next records need schemas that the registry was not asked for yet.

    Attributes
    ----------
    needed
        The ids, each with the first offset that needs it.
    end
        The offset after the records at hand.
    """

    def __init__(self, needed: Mapping[int, int], end: int) -> None:
        super().__init__(f"schemas {', '.join(map(str, needed))} are not known")
        self.needed = needed
        self.end = end


class HeldPartition(PartitionQueries):
    """A partition's state between two batches.

    Attributes
    ----------
    next_offset
        The next offset to read: earlier records are learned and their outputs acknowledged.
    emit_from
        The outputs of records before this offset exist; these records are only learned again.
    committed
        The group's committed offset; None if the start of learning is not recorded yet.
    network
        The size of the network at the last measurement; None before the first.
    lag
        The number of unread records at the last measurement; None before the first.
    missing
        The number of offsets without a record: compaction, retention, transaction markers.
    rejections, fields
        Log the rejected records, and what the records lack.
    schedule
        Saves the snapshots when they are due.
    topic_id
        The id of the source topic; None if the broker assigns no ids.
    lock
        To be held from learning a block to the acknowledgement of its outputs.
    waiting
        The batches that are processed next, while others are in work; None without any.
    awaits_schemas
        Whether the next record needs a schema that is not known: what is read is dropped.
    following
        What follows the pipeline where settings have changed.
    """

    def __init__(
        self,
        tp: TP,
        pipeline: PartitionPipeline,
        resume: Resume,
        compute: Compute,
        send: Send,
        metrics: PartitionMetrics,
        schedule: SnapshotSchedule,
        follows: Successor | Change | None = None,
    ) -> None:
        self.tp = tp
        self._told: list[OutMessage] = []  # to be sent with the next records
        self.pipeline = pipeline
        self.start = resume.start
        self.topic_id = resume.topic_id
        self.next_offset = resume.start if pipeline.next_offset is None else pipeline.next_offset
        self.emit_from = resume.emit_from
        self.committed = resume.committed
        self.network: NetworkSize | None = None
        self.lag: int | None = None
        self.missing = 0
        self._told_without_entity = False
        self.rejections = RejectionLog(tp)
        self.fields = FieldLog(tp, pipeline)
        self.metrics = metrics
        self.schedule = schedule
        metrics.begin_anew()  # they may be of another model, of a topic that was recreated since
        self.metrics.open = pipeline.open_incidents
        self.following = Following(tp, follows, metrics)
        self._measured_at = 0
        self._record_seconds = math.inf  # what one of the latest block took
        self._processing: Future[ProcessedBlock] | None = None
        self.lock = asyncio.Lock()
        self.waiting: list[RecordBatch] | None = None
        self.awaits_schemas = False
        self._compute = compute
        self._send = send

    @property
    def successor(self) -> Successor | None:
        """The pipeline with changed settings that is to follow; None without one."""
        return self.following.successor

    @property
    def successor_awaits(self) -> dict[str, int] | None:
        """How many records, days and entities a successor has still to learn; None without one."""
        return None if self.successor is None else self.successor.awaits(self.pipeline)

    @property
    def committable(self) -> int:
        """The offset to commit: the outputs of all earlier records are acknowledged."""
        return max(self.next_offset, self.emit_from)

    @property
    def position(self) -> OffsetAndMetadata:
        """The offset to commit, with the start of learning as metadata."""
        return self._position(self.committable)

    @property
    def is_whole(self) -> bool:
        """Whether the outputs of all learned records are acknowledged."""
        # A cancelled batch may still run in the compute thread, where nothing can end it.
        if self._processing is not None and not self._processing.done():
            return False
        return self.pipeline.next_offset in (None, self.next_offset)

    def update_offsets(self, resume: Resume) -> None:
        """Set the offsets that the broker reported after a rebalance."""
        self.emit_from = resume.emit_from
        self.committed = resume.committed
        self.topic_id = resume.topic_id

    def skip_deleted(self, offset: int) -> None:
        """Continue at `offset`, the log's first, if earlier records were deleted unread."""
        if offset > self.next_offset:
            self._count_missing(offset - self.next_offset)
            self.next_offset = offset
            if self.pipeline.next_offset is not None:
                self.pipeline.next_offset = offset

    def set_lag(self, records: int) -> None:
        """Record how many records of the log are unread."""
        self.lag = records
        self.metrics.set_lag(records)

    async def measure_network(self, *, restored: bool = False) -> None:
        """Measure the network if the model has learned since the last measurement.

        The structure changes of a network that was just `restored` are not counted again.
        """
        learner = self.pipeline.learner
        if learner is None or learner.n_records_ == self._measured_at:
            return
        self._measured_at = learner.n_records_
        self.network = await self._in_learner_thread(network_size, learner)
        metrics = self.metrics
        record = metrics.set_restored_network if restored else metrics.set_network
        record(self.network)

    async def process(self, batch: RecordBatch) -> None:
        """Score, learn and emit the new records of a batch; the caller holds the lock.

        Raises
        ------
        OutOfPlaceError
            The batch does not continue at the next offset; it was not processed.
        UnknownSchemasError
            The records from the next offset on need schemas.
        LostPartitionError
            Another worker owns the partition.
        """
        if batch.position > self.next_offset:
            raise OutOfPlaceError
        for records in self._pieces(batch):
            needed = self.pipeline.needed_schemas(records)
            first = min(needed.values(), default=records[-1].offset + 1)
            known = records[: bisect_left(records, first, key=attrgetter("offset"))]
            if known:
                self._log_missing(known)
                await self._process(known)
            if needed:
                raise UnknownSchemasError(needed, records[-1].offset + 1)

    async def save_snapshot(self, *, now: bool = False) -> None:
        """Save a snapshot if one is due, or `now` if there are records since the last one.

        Raises
        ------
        LostPartitionError
            Another worker owns the partition.
        """
        if not (self.schedule.is_due(self.next_offset) or now):
            return
        began = time.perf_counter()
        async with self.lock:
            if self.schedule.offset == self.next_offset or not self.is_whole:
                return
            if self.pipeline.is_choosing:
                return  # after a restart the first records are read again
            offset = self.next_offset
            state = await self._compute.run(self._state)
        with state:
            await self.schedule.save(offset, state)
        self.metrics.observe_stage("snapshot", time.perf_counter() - began)

    def _state(self) -> Extent:
        """Return a copy of the state as a snapshot; to be called in the compute thread."""
        where = self.next_offset, self.topic_id
        successor = None if self.successor is None else self.successor.snapshot_parts(*where)
        return spooled(self.pipeline.snapshot_parts(self.start, *where, successor))

    def _position(self, offset: int) -> OffsetAndMetadata:
        model, changed = self.pipeline.initial_model, self.following.recorded(self.pipeline)
        metadata = start_metadata(self.start, self.topic_id, model, changed)
        return OffsetAndMetadata(offset, metadata)

    def _pieces(self, batch: RecordBatch) -> Iterator[Sequence[KafkaRecord]]:
        """Yield the new records: first those whose outputs exist, then the others.

        Other settings come to count between two pieces.
        """
        offset = attrgetter("offset")
        records = batch.records[bisect_left(batch.records, self.next_offset, key=offset) :]
        cuts = {0, bisect_left(records, self.emit_from, key=offset), len(records)}
        cuts |= self.following.cuts(records)
        yield from (records[first:last] for first, last in pairwise(sorted(cuts)))

    def _log_missing(self, records: Sequence[KafkaRecord]) -> None:
        missing = records[-1].offset + 1 - self.next_offset - len(records)
        if missing:
            # Transaction markers are common: one line for each partition is enough.
            level = logging.DEBUG if self.missing else logging.INFO
            values = (*self.tp, missing, self.next_offset)
            extra = at(self.tp, self.next_offset, records=missing)
            logger.log(level, "%s/%d: the log lacks %d offsets from %d on", *values, extra=extra)
            self._count_missing(missing)

    def _count_missing(self, offsets: int) -> None:
        self.missing += offsets
        self.metrics.count_missing(offsets)

    async def _process(self, records: Sequence[KafkaRecord]) -> None:
        if self.following.is_due(self.pipeline, self.next_offset - 1, records[0].offset):
            await self._take_over(records[0])
        block = await self._computed(records)
        block.incidents[:0] = self._told
        self.following.tell(self.pipeline, records[-1].offset + 1)
        if records[0].offset < self.emit_from:
            self.metrics.count_replayed(block)
        else:
            await self._emit(block, records[-1].offset + 1)
        self._told = []
        self.next_offset = records[-1].offset + 1

    async def _computed(self, records: Sequence[KafkaRecord]) -> ProcessedBlock:
        if len(records) * self._record_seconds <= pace.SHORT_BLOCK_SECONDS:
            block = await self._compute.now(self._learned, records)
        else:
            self._processing = await self._compute.begin(self._learned, records)
            block = await asyncio.wrap_future(self._processing)
            self._processing = None  # which would keep the block in memory
        self._record_seconds = sum(block.seconds.values()) / len(records)
        return block

    def _learned(self, records: Sequence[KafkaRecord]) -> ProcessedBlock:
        """Process the next records, also by the successor; to be called in the compute thread."""
        block = self.pipeline.process(records)
        block.seconds["learn"] += self.following.learn(records, self.pipeline)
        return block

    async def _take_over(self, record: KafkaRecord) -> None:
        """Let the new settings count from a record on."""
        taken = await self._compute.run(self.following.take_over, self.pipeline, record)
        self.pipeline, self.fields, self._told = taken.pipeline, taken.fields, taken.told
        self.start = self.start if taken.start is None else taken.start
        self.metrics.begin_anew()  # rows may have other columns
        self.schedule.hurry()

    async def _emit(self, block: ProcessedBlock, next_offset: int) -> None:
        began = time.perf_counter()
        await self._send(self.tp, block, self._position(next_offset))
        block.seconds["emit"] += time.perf_counter() - began
        self.metrics.count_emitted(block, ages(block))
        self.rejections.add(block)
        self.fields.add(block)
        self.metrics.empty_fields = len(self.fields.empty)
        self.metrics.ignored_fields = len(self.pipeline.left_out)
        self._tell_without_entity(block, next_offset)

    def _tell_without_entity(self, block: ProcessedBlock, next_offset: int) -> None:
        """Warn once if records have no entity: the setting may name the wrong field."""
        if self._told_without_entity or block.entities is None or not block.entities.without:
            return
        self._told_without_entity = True
        values = (*self.tp, block.entities.without, len(block.scores), next_offset)
        logger.warning(
            "%s/%d: %d of %d records before offset %d have no entity, and share one; later ones "
            "are not named",
            *values,
            extra=at(self.tp, next_offset, records=block.entities.without),
        )


def ages(block: ProcessedBlock) -> NDArray[np.float64]:
    """Return the ages (m,) of the scored records in seconds; NaN without a timestamp.

    A record from a clock that is ahead is new: Prometheus takes a falling sum for a restart.
    """
    return np.maximum(time.time() - block.timestamps / 1000, 0)


def network_size(learner: OSLRAU) -> NetworkSize:
    """Return the size of a learner's network; takes at least a tenth of a millisecond."""
    return NetworkSize(
        learner.node_counts_,
        learner.n_edges_,
        learner.n_parameters_,
        learner.depth_,
        learner.structure_changes_,
    )
