"""The partitions that the group has given to this worker, from assignment to revocation."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiokafka.errors import KafkaError
from faust.types import TP

from faust_oslrau.app.kafka.batches import RecordBatch
from faust_oslrau.app.kafka.positions import PartitionLog, find_logs
from faust_oslrau.app.kafka.topics import OutputTopics
from faust_oslrau.app.kafka.transactions import LostPartitionError, Producers
from faust_oslrau.app.kafka.transport import Consumer
from faust_oslrau.app.logs import at
from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import SnapshotError, SnapshotSchedule, SnapshotStore

from .delivery import Delivery
from .held_partition import HeldPartition, OutOfPlaceError
from .log_changes import is_overtaken
from .opening import Opener

logger = logging.getLogger(__name__)

# Batches in work at once, each of another partition: enough to compute while others wait for the
# broker. Together with those in Faust's buffer they bound the memory.
_BATCHES_IN_WORK = 16
_RETRY_SECONDS = 1.0
# How often to look whether an output topic got the partitions that it lacks.
_TOPICS_SECONDS = 5.0
# At the end of the work the others wait: snapshots that take longer are left to the next worker.
_LAST_SNAPSHOTS_SECONDS = 5.0


class Assignment:
    """Opens partitions, runs their batches, commits, and lets go of them.

    Parameters
    ----------
    settings
        The worker's settings.
    consumer
        Reads the source topics.
    topics
        Where the outputs go.
    delivery
        Sends the outputs and commits.
    producers
        Write what belongs to one partition, and keep others from doing so.
    store
        Keeps the snapshots.
    metrics
        Where everything is counted.
    crash
        Ends the app after an error that nothing can be done about.
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
        # One thread: the kernels release the GIL, so that the event loop runs beside it.
        self._compute = ThreadPoolExecutor(1, "oslrau-compute")
        self._opener = Opener(settings, store, self._compute, metrics)
        self._slots = asyncio.Semaphore(_BATCHES_IN_WORK)
        self._committing = asyncio.Lock()
        self._work: set[asyncio.Task[None]] = set()
        self._calls: set[asyncio.Task[None]] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._parked: dict[TP, HeldPartition] = {}
        self._waiting: frozenset[TP] = frozenset()

    def assigned(self, partitions: frozenset[TP]) -> None:
        """Open these partitions, with the state of those that were held before, and no others."""
        for tp in self._parked.keys() - partitions:
            del self._parked[tp]
        self._metrics.retain(partitions)
        self._waiting = frozenset()
        self._stop_opening()
        self._begin_opening(self._open(partitions))

    async def revoked(self, seconds: float) -> bool:
        """End the work in at most about `seconds`, commit, save, and keep what may come back.

        Tell whether the broker has acknowledged all of it.
        """
        self._stop_opening()
        # Batches that wait find their partition gone; those in work are finished.
        held, self.held = self.held, {}
        await self._finish_work(seconds)
        committed = await self.commit(held.values())
        if committed:  # else the broker is away
            await self._save_last(held.values())
        await self._store.close()
        await self._producers.close()
        for tp, partition in held.items():
            partition.rejections.sum_up(now=True)
            if partition.is_whole:
                self._parked[tp] = partition
            else:
                self._metrics.remove(*tp)
        return committed and all(partition.is_whole for partition in held.values())

    def resumed(self) -> None:
        """Read all partitions again from where their state is."""
        self._start(self._read())

    async def stop(self, seconds: float) -> bool:
        """End the work for good; else as `revoked`."""
        acknowledged = await self.revoked(seconds)
        self._compute.shutdown(wait=False, cancel_futures=True)
        return acknowledged

    async def handle(self, batch: RecordBatch) -> None:
        """Take a batch into work; waits while there is enough of it."""
        partition = self.held.get(batch.tp)
        if partition is not None:
            await self._slots.acquire()
            # The partition's lock is fair: batches are done in the order in which they came.
            task = self._start(self._process(partition, batch))
            self._work.add(task)
            task.add_done_callback(self._finished)

    async def commit(self, partitions: Iterable[HeldPartition]) -> bool:
        """Commit what has not been committed yet; a failure is logged and made good later."""
        async with self._committing:
            due = {p: p.committable for p in partitions if p.committable != p.committed}
            offsets = {p.tp: p.position for p in due}
            if not await self._delivery.commit(offsets):
                return False
            for partition, offset in due.items():
                partition.committed = offset
            return True

    async def save_snapshot(self, partition: HeldPartition, *, now: bool = False) -> None:
        """Save a snapshot of a partition where one is due, or `now`."""
        if self._settings.snapshots == "off":
            return
        try:
            await partition.save_snapshot(now=now)
        except LostPartitionError as error:
            self._lose(partition, error)

    def open_anew(self, partition: HeldPartition, reason: str) -> None:
        """Have the partition's state compared with what its log has become; under its lock."""
        if self.held.get(partition.tp) is partition:
            logger.warning("%s/%d: opened again, %s", *partition.tp, reason, extra=at(partition.tp))
            self._parked[partition.tp] = self.held.pop(partition.tp)
            self._begin_opening(self._open(frozenset({partition.tp})))

    async def _save_last(self, partitions: Iterable[HeldPartition]) -> None:
        tasks = [
            asyncio.create_task(self.save_snapshot(partition, now=True)) for partition in partitions
        ]
        if not tasks:
            return
        _, unfinished = await asyncio.wait(tasks, timeout=_LAST_SNAPSHOTS_SECONDS)
        if unfinished:
            logger.warning("%d last snapshots not saved in time", len(unfinished))
            for task in unfinished:
                task.cancel()
            await asyncio.wait(unfinished)

    def _begin_opening(self, call: Coroutine[Any, Any, None]) -> None:
        task = self._start(call)
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _stop_opening(self) -> None:
        self.is_open = False
        for task in self._opening:
            task.cancel()

    async def _open(self, assigned: frozenset[TP]) -> None:
        partitions = await self._topics.with_outputs(assigned)
        self._waiting = (self._waiting - partitions) | (assigned - partitions)
        self._metrics.worker.waiting_partitions.set(len(self._waiting))
        if partitions < assigned:
            self._begin_opening(self._open_after(_TOPICS_SECONDS, assigned - partitions))
        while not await self._try_open(partitions):
            await asyncio.sleep(_RETRY_SECONDS)
        self.is_open = True
        names = ", ".join(f"{topic}/{number}" for topic, number in sorted(partitions))
        logger.info("reading %s", names or "nothing: there are more workers than partitions")

    async def _try_open(self, partitions: frozenset[TP]) -> bool:
        """Open partitions; False where the broker or the snapshots' store is away."""
        try:
            # Whoever had them before can write nothing more: only now are their traces final.
            if self._settings.uses_transactions:
                await asyncio.gather(*map(self._producers.open, partitions))
            await asyncio.gather(*map(self._store.open, partitions))
            logs = await find_logs(self._consumer, partitions, self._settings)
            for log in logs:
                self.held[log.tp] = await self._open_partition(log)
            # Where learning begins is recorded before anything is read.
            opened = [self.held[tp] for tp in partitions]
            await self._delivery.record({p.tp: p.position for p in opened if p.committed is None})
        except (KafkaError, SnapshotError, LostPartitionError) as error:
            self._metrics.worker.failed_openings.inc()
            logger.warning("waiting for the partitions' offsets and snapshots: %r", error)
            return False
        await self._read()
        return True

    async def _open_partition(self, log: PartitionLog) -> HeldPartition:
        tp = log.tp
        found = await self._opener.find(log, self._parked.get(tp) or self.held.get(tp))
        self._parked.pop(tp, None)  # not before: an attempt that fails must not lose it
        if isinstance(found, HeldPartition):
            return found
        metrics = self._metrics.of_partition(*tp)
        schedule = SnapshotSchedule(tp, found.resume.start, self._store, self._settings, metrics)
        partition = HeldPartition(
            tp, found.pipeline, found.resume, self._compute, self._delivery.send, metrics, schedule
        )
        if found.snapshot is not None:
            schedule.record(*found.snapshot)
            partition.skip_to(log.first)
            await partition.measure_network(restored=True)
        return partition

    def _lose(self, partition: HeldPartition, error: LostPartitionError) -> None:
        """Let go of a partition that another worker has taken, or seems to have taken."""
        if self.held.get(partition.tp) is not partition:
            return
        logger.error("%s/%d: given up, %s", *partition.tp, error, extra=at(partition.tp))
        del self.held[partition.tp]
        self._metrics.remove(*partition.tp)
        # Taken back where the group has not given it to another meanwhile.
        wait = self._settings.session_timeout
        self._begin_opening(self._open_after(wait, frozenset({partition.tp})))

    async def _open_after(self, seconds: float, partitions: frozenset[TP]) -> None:
        await asyncio.sleep(seconds)
        await self._open(partitions)

    async def _read(self) -> None:
        positions = {tp: partition.next_offset for tp, partition in self.held.items()}
        await self._consumer.read_from(positions)

    async def _process(self, partition: HeldPartition, batch: RecordBatch) -> None:
        async with partition.lock:
            if self.held.get(partition.tp) is partition:
                try:
                    if await is_overtaken(self._consumer, partition, batch):
                        self.open_anew(partition, "its log has lost what was to be read next")
                        return
                    await partition.process(batch)
                except LostPartitionError as error:
                    self._lose(partition, error)
                except OutOfPlaceError:
                    offset = partition.next_offset
                    place = at(partition.tp, offset)
                    logger.info("%s/%d: reading again from %d", *partition.tp, offset, extra=place)
                    await self._consumer.read_from({partition.tp: offset})
                self.last_progress = time.monotonic()

    async def _finish_work(self, seconds: float) -> None:
        if not self._work:
            return
        _, unfinished = await asyncio.wait(self._work, timeout=seconds)
        if unfinished:
            logger.error("%d batches not acknowledged in time, to be done again", len(unfinished))
            for task in unfinished:
                task.cancel()
            await asyncio.wait(unfinished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        self._slots.release()

    def _start(self, call: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine, whose failure ends the app."""
        task = asyncio.create_task(self._guard(call))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return task

    async def _guard(self, call: Coroutine[Any, Any, None]) -> None:
        try:
            await call
        except Exception as error:  # nothing of this may end unseen
            await self._crash(error)
