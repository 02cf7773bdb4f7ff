"""The partitions that the consumer group assigned to this worker, until they are revoked."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any

from aiokafka.errors import KafkaError
from faust.types import TP

from faust_oslrau.app import pace
from faust_oslrau.app.kafka.batches import RecordBatch, join
from faust_oslrau.app.kafka.positions import PartitionLog, find_logs, is_of_earlier_version
from faust_oslrau.app.kafka.rights import reason
from faust_oslrau.app.kafka.topics import OutputTopics
from faust_oslrau.app.kafka.transactions import LostPartitionError, Producers
from faust_oslrau.app.kafka.transport import Consumer
from faust_oslrau.app.logs import at
from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import SnapshotError, SnapshotSchedule, SnapshotStore

from .compute import Compute
from .delivery import Delivery
from .held_partition import HeldPartition, OutOfPlaceError, UnknownSchemasError
from .log_changes import change_before
from .opening import Opener
from .schema_desk import SchemaDesk
from .work_limit import WorkLimit

logger = logging.getLogger(__name__)

# Batches in work at once: enough that under load several of one partition wait and are joined,
# which takes less time for each record. Their records are bounded, too: many large batches would
# fill the memory. Together with Faust's buffer this bounds the memory.
BATCHES_IN_WORK = 32
_RECORDS_IN_WORK = 16_384
_RETRY_SECONDS = 1.0
# How often it is told that openings go on to fail.
_TELL_SECONDS = 30.0
# How often to check whether missing partitions of output topics have been added.
_TOPICS_SECONDS = 5.0
# The group waits for the last snapshots of a revocation. What they lack, the next worker replays.
_LAST_SNAPSHOTS_SECONDS = 5.0


class Assignment:
    """Opens the assigned partitions, processes their batches, commits, and closes them.

    Parameters
    ----------
    settings
        The worker's settings.
    consumer
        Reads the source topics.
    topics
        The output topics.
    delivery
        Sends the outputs and commits offsets.
    producers
        Transactional producers, one for each partition; they fence a partition's former owner.
    store
        Stores the snapshots.
    metrics
        The worker's metrics.
    crash
        Stops the app after an unrecoverable error.
    schemas
        Knows the schemas of records; None for records that are JSON.
    """

    def __init__(
        self,
        settings: Settings,
        consumer: Consumer,
        topics: OutputTopics,
        delivery: Delivery,
        producers: Producers,
        store: SnapshotStore,
        metrics: Metrics,
        crash: Callable[[BaseException], Awaitable[None]],
        schemas: SchemaDesk | None = None,
    ) -> None:
        self.held: dict[TP, HeldPartition] = {}
        self.is_open = False
        self.last_progress = time.monotonic()
        self._settings = settings
        self._consumer = consumer
        self._topics = topics
        self._delivery = delivery
        self._producers = producers
        self._store = store
        self._metrics = metrics
        self._crash = crash
        self._schemas = schemas
        self._compute = Compute()
        self._opener = Opener(settings, store, self._compute, metrics)
        self._work = WorkLimit(BATCHES_IN_WORK, _RECORDS_IN_WORK)
        self._committing = asyncio.Lock()
        self._batches: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._parked: dict[TP, HeldPartition] = {}
        self._without_outputs: frozenset[TP] = frozenset()
        # The kind of error of the last failed opening, and when it was told.
        self._failed: tuple[type[Exception], float] | None = None

    @property
    def waiting(self) -> int:
        """How many records wait, as far as is known.

        Without those of partitions that await schemas: for these a restart would not help.
        """
        held = self.held.values()
        return sum(partition.lag or 0 for partition in held if not partition.awaits_schemas)

    def set_lags(self, lags: Mapping[TP, int]) -> None:
        """Record how many records of some logs are unread."""
        for tp, records in lags.items():
            if tp in self.held:
                self.held[tp].set_lag(records)
        if not self.waiting:
            self.last_progress = time.monotonic()

    def assigned(self, partitions: frozenset[TP]) -> None:
        """Open exactly these partitions; those held before the rebalance keep their state."""
        for tp in self._parked.keys() - partitions:
            del self._parked[tp]
        self._metrics.retain(partitions)
        self._without_outputs = frozenset()
        self._stop_opening()
        self._begin_opening(self._open(partitions))

    async def revoked(self, seconds: float) -> bool:
        """Finish the batches in work within about `seconds`, commit, and save snapshots.

        The states are parked, as the group may assign the same partitions again. Tell whether the
        broker has acknowledged all outputs and commits.
        """
        self._stop_opening()
        # Waiting batches are dropped, as their partition is no longer held.
        held, self.held = self.held, {}
        await self._finish_work(seconds)
        committed = await self.commit(held.values())
        if committed:  # else no broker answers
            await self._save_last(held.values())
        await self._store.close()
        await self._producers.close()
        for tp, partition in held.items():
            partition.rejections.summarize(now=True)
            if partition.is_whole:
                self._parked[tp] = partition
            else:
                self._metrics.remove(*tp)
        return committed and all(partition.is_whole for partition in held.values())

    def resumed(self) -> None:
        """Read all partitions again from the offsets of their states."""
        self._start(self._read())

    async def stop(self, seconds: float) -> bool:
        """Stop like `revoked`, and end the compute thread."""
        acknowledged = await self.revoked(seconds)
        self._compute.close()
        return acknowledged

    async def handle(self, batch: RecordBatch) -> None:
        """Start to process a batch; waits while too many are in work."""
        partition = self.held.get(batch.tp)
        if partition is None:
            return
        await self._work.begin(len(batch.records))
        if partition.waiting is not None:
            partition.waiting.append(batch)
            return
        partition.waiting = [batch]
        # The partition's lock is fair: batches are processed in their order.
        task = self._start(self._process(partition, partition.waiting))
        self._batches.add(task)
        task.add_done_callback(self._batches.discard)

    async def commit(self, partitions: Iterable[HeldPartition]) -> bool:
        """Commit new offsets; after a failure, which is logged, the next commit covers them."""
        async with self._committing:
            due = {p: p.committable for p in partitions if p.committable != p.committed}
            offsets = {p.tp: p.position for p in due}
            if not await self._delivery.commit(offsets):
                return False
            for partition, offset in due.items():
                partition.committed = offset
            return True

    async def save_snapshot(self, partition: HeldPartition, *, now: bool = False) -> None:
        """Save a snapshot of a partition if one is due, or `now`."""
        if self._settings.snapshots == "off":
            return
        try:
            await partition.save_snapshot(now=now)
        except LostPartitionError as error:
            self._give_up(partition, error)

    def reopen(self, partition: HeldPartition, reason: str) -> None:
        """Open a partition again, as its log has changed; the caller holds its lock."""
        if self.held.get(partition.tp) is partition:
            logger.warning("%s/%d: reopened, %s", *partition.tp, reason, extra=at(partition.tp))
            self._parked[partition.tp] = self.held.pop(partition.tp)
            partition.awaits_schemas = False
            self._begin_opening(self._open(frozenset({partition.tp})))

    async def _save_last(self, partitions: Iterable[HeldPartition]) -> None:
        tasks = [
            asyncio.create_task(self.save_snapshot(partition, now=True)) for partition in partitions
        ]
        if not tasks:
            return
        _, unfinished = await asyncio.wait(tasks, timeout=_LAST_SNAPSHOTS_SECONDS)
        if unfinished:
            logger.warning("%d final snapshots were not saved in time", len(unfinished))
            for task in unfinished:
                task.cancel()
            await asyncio.wait(unfinished)

    def _begin_opening(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._start(coroutine)
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _stop_opening(self) -> None:
        self.is_open = False
        for task in self._opening:
            task.cancel()

    async def _open(self, assigned: frozenset[TP]) -> None:
        partitions = await self._topics.with_outputs(assigned)
        self._without_outputs = (self._without_outputs - partitions) | (assigned - partitions)
        self._metrics.worker.waiting_partitions.set(len(self._without_outputs))
        if partitions < assigned:
            self._begin_opening(self._open_after(_TOPICS_SECONDS, assigned - partitions))
        while not await self._try_open(partitions):
            await asyncio.sleep(_RETRY_SECONDS)
        self.is_open = True
        names = ", ".join(f"{topic}/{number}" for topic, number in sorted(partitions))
        logger.info("reading %s", names or f"nothing: {await self._why_nothing(assigned)}")

    async def _why_nothing(self, assigned: frozenset[TP]) -> str:
        """Return why no partition is read; of those that are assigned, none has outputs yet."""
        if assigned:
            return "the partitions wait for those of the outputs"
        topics = self._settings.source_topics
        try:
            known = await self._consumer.topic_ids(topics)
        except KafkaError:
            return "no partition is assigned"
        missing = [topic for topic in topics if topic not in known]
        if missing:
            return f"the broker does not know {', '.join(missing)}"
        return "there are more workers than partitions"

    def _tell_failed(self, error: Exception) -> None:
        """Tell of an opening that fails; of one of the same kind again after a while."""
        now = time.monotonic()
        kind, told = self._failed or (None, now)
        if kind is type(error) and now < told + _TELL_SECONDS:
            return
        self._failed = type(error), now
        logger.warning("waiting for the partitions' offsets and snapshots: %s", reason(error))

    async def _try_open(self, partitions: frozenset[TP]) -> bool:
        """Open partitions; False if the broker or the snapshot store does not answer."""
        try:
            # Fence the former owners first: their offsets and snapshots change no more.
            if self._settings.uses_transactions:
                await self._open_producers(partitions)
            await asyncio.gather(*map(self._store.open, partitions))
            logs = await find_logs(self._consumer, partitions, self._settings)
            for log in logs:
                self.held[log.tp] = await self._with_schemas(await self._open_partition(log))
            # Record where learning begins before reading anything.
            opened = [self.held[tp] for tp in partitions]
            await self._delivery.record({p.tp: p.position for p in opened if p.committed is None})
        except (KafkaError, SnapshotError, LostPartitionError) as error:
            self._metrics.worker.failed_openings.inc()
            self._tell_failed(error)
            return False
        self._failed = None
        await self._read()
        return True

    async def _open_producers(self, partitions: frozenset[TP]) -> None:
        committed = await self._consumer.committed(partitions)
        earlier = [tp for tp in committed if is_of_earlier_version(committed[tp])]
        await asyncio.gather(
            *map(self._producers.open, partitions),
            *map(self._producers.fence_earlier_version, earlier),
        )

    async def _open_partition(self, log: PartitionLog) -> HeldPartition:
        tp = log.tp
        state = await self._opener.find(log, self._parked.get(tp) or self.held.get(tp))
        self._parked.pop(tp, None)  # not before: a failed attempt must not lose it
        if isinstance(state, HeldPartition):
            return state
        metrics = self._metrics.of_partition(*tp)
        schedule = SnapshotSchedule(tp, state.resume.start, self._store, self._settings, metrics)
        partition = HeldPartition(
            tp, state.pipeline, state.resume, self._compute, self._delivery.send, metrics, schedule,
            state.follows,
        )  # fmt: skip
        if state.snapshot is not None:
            schedule.record(*state.snapshot)
            partition.skip_deleted(log.first)
            await partition.measure_network(restored=True)
        return partition

    async def _with_schemas(self, partition: HeldPartition) -> HeldPartition:
        """Return a partition with all schemas that were accepted for it."""
        if self._schemas is not None:
            found = await self._schemas.translator(partition.tp, partition.topic_id)
            partition.pipeline.translator = found
            partition.awaits_schemas = False
        return partition

    def _await_schemas(self, partition: HeldPartition, unknown: UnknownSchemasError) -> None:
        """Read no further until the schemas are known that the next records need."""
        partition.awaits_schemas = True
        self._begin_opening(self._go_on_with_schemas(partition, unknown))

    async def _go_on_with_schemas(
        self, partition: HeldPartition, unknown: UnknownSchemasError
    ) -> None:
        if self._schemas is None:
            raise unknown
        await self._consumer.hold(partition.tp)
        try:
            await self._schemas.answer(partition, unknown)
        except LostPartitionError as error:
            self._give_up(partition, error)
        partition.awaits_schemas = False
        if self.held.get(partition.tp) is partition:
            await self._consumer.read_from({partition.tp: partition.next_offset})

    def _give_up(self, partition: HeldPartition, error: LostPartitionError) -> None:
        """Give up a partition whose producer was fenced, as another worker seems to own it."""
        if self.held.get(partition.tp) is not partition:
            return
        logger.error("%s/%d: given up, %s", *partition.tp, error, extra=at(partition.tp))
        del self.held[partition.tp]
        partition.awaits_schemas = False
        self._metrics.remove(*partition.tp)
        # Open it again later, unless the group assigns it to another worker in the meantime.
        wait = self._settings.session_timeout
        self._begin_opening(self._open_after(wait, frozenset({partition.tp})))

    async def _open_after(self, seconds: float, partitions: frozenset[TP]) -> None:
        await asyncio.sleep(seconds)
        await self._open(partitions)

    async def _read(self) -> None:
        positions = {
            tp: partition.next_offset
            for tp, partition in self.held.items()
            if not partition.awaits_schemas
        }
        await self._consumer.read_from(positions)
        self.last_progress = time.monotonic()

    async def _process(self, partition: HeldPartition, batches: list[RecordBatch]) -> None:
        """Process the batches that have come by the time when those before them are done."""
        try:
            async with partition.lock:
                partition.waiting = None
                for batch in join(batches, pace.BATCH_RECORDS):
                    await self._process_batch(partition, batch)
        finally:
            if partition.waiting is batches:  # cancelled before their turn
                partition.waiting = None
            for batch in batches:
                self._work.end(len(batch.records))

    async def _process_batch(self, partition: HeldPartition, batch: RecordBatch) -> None:
        if self.held.get(partition.tp) is not partition or partition.awaits_schemas:
            return
        try:
            change = await change_before(self._consumer, partition, batch)
            if change is not None:
                self.reopen(partition, change)
                return
            await partition.process(batch)
        except LostPartitionError as error:
            self._give_up(partition, error)
        except OutOfPlaceError:
            offset = partition.next_offset
            extra = at(partition.tp, offset)
            logger.info("%s/%d: reading again from %d", *partition.tp, offset, extra=extra)
            await self._consumer.read_from({partition.tp: offset})
        except UnknownSchemasError as unknown:
            self._await_schemas(partition, unknown)
        self.last_progress = time.monotonic()

    async def _finish_work(self, seconds: float) -> None:
        if not self._batches:
            return
        _, unfinished = await asyncio.wait(self._batches, timeout=seconds)
        if unfinished:
            logger.error(
                "%d batches were not acknowledged in time and will be repeated", len(unfinished)
            )
            for task in unfinished:
                task.cancel()
            await asyncio.wait(unfinished)

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task; its failure stops the app."""
        task = asyncio.create_task(self._guard(coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step leaves what it was to run unawaited.
        task.add_done_callback(lambda _: coroutine.close())
        return task

    async def _guard(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except Exception as error:  # no failure of a task may go unnoticed
            await self._crash(error)
