"""One partition that this worker holds: its pipeline, its offsets, and the only way to go on."""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from operator import attrgetter
from typing import Protocol, TypeVar

import numpy as np
from aiokafka import OffsetAndMetadata
from faust.types import TP
from numpy.typing import NDArray

from faust_oslrau.app.kafka.batches import RecordBatch
from faust_oslrau.app.kafka.positions import start_metadata
from faust_oslrau.app.logs import at
from faust_oslrau.app.metrics import NetworkSize, PartitionMetrics
from faust_oslrau.app.pipeline import PartitionPipeline, ProcessedBlock
from faust_oslrau.app.snapshots import SnapshotSchedule
from faust_oslrau.learner import OSLRAU
from faust_oslrau.topics import KafkaRecord

from .rejection_log import RejectionLog
from .resume import Resume

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class Send(Protocol):
    """Sends what some records led to."""

    async def __call__(self, tp: TP, block: ProcessedBlock, position: OffsetAndMetadata) -> None:
        """Return when the broker has acknowledged all of it.

        `position` is what to commit then: the records end before its offset.
        """


class OutOfPlaceError(Exception):
    """A batch was read from an offset beyond the next one: a batch between was dropped."""


class HeldPartition:
    """A partition's state between two batches.

    Attributes
    ----------
    next_offset
        The offset to read next: the records before it are learned, their outputs acknowledged.
    emit_from
        Outputs for offsets below it exist; such records are only learned again.
    committed
        What the group has committed, None where it has yet to be recorded where learning began.
    network
        Size of the network when it was last measured, None before there is one.
    lag
        Records that waited in the log when it was last looked at, None before.
    missing
        Offsets that the log lacks: compaction, retention, transactions.
    rejections
        What the log says of rejected records.
    schedule
        Saves the snapshots when they are due.
    topic_id
        Id of the topic that was learned from, None where the broker gives it none.
    lock
        To be held from learning to the acknowledgement.
    """

    def __init__(
        self,
        tp: TP,
        pipeline: PartitionPipeline,
        resume: Resume,
        compute: Executor,
        send: Send,
        metrics: PartitionMetrics,
        schedule: SnapshotSchedule,
    ) -> None:
        self.tp = tp
        self.pipeline = pipeline
        self.start = resume.start
        self.topic_id = resume.topic_id
        self.next_offset = resume.start if pipeline.next_offset is None else pipeline.next_offset
        self.emit_from = resume.emit_from
        self.committed = resume.committed
        self.network: NetworkSize | None = None
        self.lag: int | None = None
        self.missing = 0
        self.rejections = RejectionLog(tp)
        self.metrics = metrics
        self.schedule = schedule
        self._measured_at = 0
        self._processing: Future[ProcessedBlock] | None = None
        self.lock = asyncio.Lock()
        self._compute = compute
        self._send = send

    @property
    def committable(self) -> int:
        """The offset to commit: all outputs before it are acknowledged."""
        return max(self.next_offset, self.emit_from)

    @property
    def position(self) -> OffsetAndMetadata:
        """What to commit: the offset, and where learning began."""
        return self._position(self.committable)

    @property
    def is_whole(self) -> bool:
        """Tell whether everything that the pipeline has learned is acknowledged as well."""
        # A batch that was cancelled may still run: nothing ends it in its thread.
        if self._processing is not None and not self._processing.done():
            return False
        return self.pipeline.next_offset in (None, self.next_offset)

    def go_on(self, resume: Resume) -> None:
        """Take up what the broker says after a rebalance."""
        self.emit_from = resume.emit_from
        self.committed = resume.committed
        self.topic_id = resume.topic_id

    def skip_to(self, offset: int) -> None:
        """Go on from this offset where the log does not hold the ones before it any more."""
        if offset > self.next_offset:
            self._count_missing(offset - self.next_offset)
            self.next_offset = offset
            if self.pipeline.next_offset is not None:
                self.pipeline.next_offset = offset

    def note_lag(self, records: int) -> None:
        """Take note of how many records wait in the log."""
        self.lag = records
        self.metrics.set_lag(records)

    async def measure_network(self, *, restored: bool = False) -> None:
        """Take note of the network's size where the model has learned since the last time.

        The changes of a network that was just `restored` have been counted by others.
        """
        learner = self.pipeline.learner
        if learner is None or learner.n_records_ == self._measured_at:
            return
        self._measured_at = learner.n_records_
        self.network = await self._in_its_thread(network_size, learner)
        note = self.metrics.begin_network if restored else self.metrics.set_network
        note(self.network)

    async def process(self, batch: RecordBatch) -> None:
        """Score, learn and emit a batch, but for records that are done already; under the lock.

        Raises
        ------
        OutOfPlaceError
            The batch does not follow; nothing is done.
        LostPartitionError
            Another worker has taken the partition.
        """
        if batch.position > self.next_offset:
            raise OutOfPlaceError
        for records in self._pieces(batch):
            self._note_missing(records)
            await self._process(records)

    async def save_snapshot(self, *, now: bool = False) -> None:
        """Save a snapshot where one is due, or `now` where there is anything to save.

        Raises
        ------
        LostPartitionError
            Another worker has taken the partition.
        """
        if not (self.schedule.is_due(self.next_offset) or now):
            return
        began = time.perf_counter()
        async with self.lock:
            if self.schedule.offset == self.next_offset or not self.is_whole:
                return
            loop = asyncio.get_running_loop()
            offset = self.next_offset
            data = await loop.run_in_executor(self._compute, self._state)
        await self.schedule.save(offset, data)
        self.metrics.observe_stage("snapshot", time.perf_counter() - began)

    async def ask(self, question: Callable[[OSLRAU], Answer]) -> Answer | None:
        """Ask about the model, None where there is none yet."""
        learner = self.pipeline.learner
        return None if learner is None else await self._in_its_thread(question, learner)

    async def _in_its_thread(self, question: Callable[[OSLRAU], Answer], learner: OSLRAU) -> Answer:
        """Ask in the thread for the learner: no other may look at it while it learns."""
        return await asyncio.get_running_loop().run_in_executor(self._compute, question, learner)

    def _state(self) -> bytes:
        """Return the state as a snapshot; in the thread for it, as it takes time."""
        return self.pipeline.snapshot(self.start, self.next_offset, self.topic_id).to_bytes()

    def _position(self, offset: int) -> OffsetAndMetadata:
        return OffsetAndMetadata(offset, start_metadata(self.start, self.topic_id))

    def _pieces(self, batch: RecordBatch) -> Iterator[Sequence[KafkaRecord]]:
        """Yield the records to process, those to be learned in silence apart from the others."""
        offset = attrgetter("offset")
        records = batch.records[bisect_left(batch.records, self.next_offset, key=offset) :]
        silent = bisect_left(records, self.emit_from, key=offset)
        yield from filter(None, (records[:silent], records[silent:]))

    def _note_missing(self, records: Sequence[KafkaRecord]) -> None:
        missing = records[-1].offset + 1 - self.next_offset - len(records)
        if missing:
            # Marks of transactions are usual: one line a partition is enough.
            level = logging.DEBUG if self.missing else logging.INFO
            place = (*self.tp, missing, self.next_offset)
            about = at(self.tp, self.next_offset, records=missing)
            logger.log(level, "%s/%d: the log lacks %d offsets after %d", *place, extra=about)
            self._count_missing(missing)

    def _count_missing(self, offsets: int) -> None:
        self.missing += offsets
        self.metrics.count_missing(offsets)

    async def _process(self, records: Sequence[KafkaRecord]) -> None:
        self._processing = self._compute.submit(self.pipeline.process, records)
        block = await asyncio.wrap_future(self._processing)
        if records[0].offset < self.emit_from:
            self.metrics.count_replayed(block)
        else:
            await self._emit(block, records[-1].offset + 1)
        self.next_offset = records[-1].offset + 1

    async def _emit(self, block: ProcessedBlock, next_offset: int) -> None:
        began = time.perf_counter()
        await self._send(self.tp, block, self._position(next_offset))
        block.seconds["emit"] += time.perf_counter() - began
        self.metrics.count_emitted(block, ages(block))
        self.rejections.note(block)


def ages(block: ProcessedBlock) -> NDArray[np.float64]:
    """Return the seconds since the scored records' timestamps, NaN where there is none."""
    return time.time() - block.timestamps / 1000


def network_size(learner: OSLRAU) -> NetworkSize:
    """Return the size of a learner's network; takes a tenth of a millisecond or more."""
    return NetworkSize(
        learner.node_counts_,
        learner.n_edges_,
        learner.n_parameters_,
        learner.depth_,
        learner.structure_changes_,
    )
