"""Faust's Kafka transport, extended for the source topics: batches, positions, read_committed.

Faust reads from its committed offsets, and drops its buffers at each rebalance. Here a source
partition is read only from a position that the worker gave, and Faust gets all batches of a poll as
one record. Each batch names the position at which its fetch began, so that a dropped batch is
noticed. Other topics of a user's app are not affected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from aiokafka import AIOKafkaConsumer, OffsetAndMetadata, TopicPartition
from aiokafka.errors import KafkaConnectionError
from faust.transport.consumer import ensure_TP
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from .batches import Fetched, RecordBatch, pack
from .committed_offsets import committed_offsets
from .group_members import foreign_members
from .no_creation import create_no_topics
from .topic_ids import TopicIds, topic_ids

_T = TypeVar("_T")
# A Faust service logs under the name of its module; these lines belong to Faust's.
_FAUST = logging.getLogger("faust")
# How long to poll the other partitions while one has no position yet.
_POLL_SECONDS = 0.05
# How long a fetch may wait for records. aiokafka has one fetch in flight for each node, so a
# partition with records waits for partitions without: Faust's 1.5 seconds would delay scores.
_FETCH_MILLISECONDS = 100
# How long leaving the group may take; otherwise the session timeout removes this member.
_LEAVE_SECONDS = 3.0


class SourceListener(Protocol):
    """Processes the source topics; called in the app's event loop."""

    @property
    def topics(self) -> frozenset[str]:
        """The source topics."""

    @property
    def batch_records(self) -> int:
        """The largest number of records in a batch."""

    @property
    def client_rack(self) -> str | None:
        """The rack of this worker: replicas there are read, if the brokers say so."""

    async def start(self, consumer: Consumer) -> None:
        """Prepare to process records; the consumer joins the group afterwards."""

    async def taken(self) -> None:
        """Return once there is room for what the next poll fetches, and it is worth its while."""

    def assigned(self, partitions: frozenset[TP]) -> None:
        """Open exactly these partitions."""

    async def revoked(self) -> None:
        """Finish the work on all partitions: the group may assign them to other workers."""

    def resumed(self) -> None:
        """Give all positions again, as Faust has dropped its buffers."""


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread with the aiokafka consumer."""

    logger = _FAUST
    consumer: Consumer

    def __post_init__(self) -> None:
        """Start without any position."""
        super().__post_init__()
        self._positions: dict[TP, int] = {}
        self._on_hold: set[TP] = set()
        self._is_connected = False

    async def on_start(self) -> None:
        """Connect to the broker."""
        await super().on_start()
        self._is_connected = True

    @property
    def kafka(self) -> AIOKafkaConsumer:
        """The aiokafka consumer; to be used in this thread only."""
        return self._ensure_consumer()

    async def run(self, call: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in this thread.

        It bypasses Faust's queue, whose two workers a commit would block while no broker answers.
        """
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self.thread_loop))

    async def read_from(self, positions: Mapping[TP, int]) -> None:
        """Read partitions from these offsets on; those no longer assigned are ignored."""
        assignment = self.assignment()
        for tp, offset in positions.items():
            if tp in assignment:
                self.kafka.seek(tp, offset)
                self._positions[tp] = offset
                self._on_hold.discard(tp)

    async def hold(self, tp: TP) -> None:
        """Stop reading a partition until it gets another position."""
        self._on_hold.add(tp)

    async def lags(self, next_offsets: Mapping[TP, int]) -> dict[TP, int]:
        """Return the number of unread records of each partition that is being read.

        Raises
        ------
        KafkaError
            No broker answers yet, or it refuses the request.
        """
        if not self._is_connected:
            raise KafkaConnectionError
        ends = _by_tp(await self.kafka.end_offsets(_plain(next_offsets)))
        found = {}
        for tp, offset in next_offsets.items():
            # Not Faust's `assignment`, which makes a set of all partitions anew.
            if tp in self._positions and tp in self.kafka.assignment():
                found[tp] = max(0, ends[tp] - await self._after_markers(tp, offset))
        return found

    async def foreign_members(self) -> dict[str, str]:
        """Return the members of the group that are no workers, each with its client id and host.

        Raises
        ------
        KafkaError
            No broker answers yet, or the group's coordinator does not.
        """
        if not self._is_connected:
            raise KafkaConnectionError
        return await foreign_members(self.kafka)

    async def _after_markers(self, tp: TP, next_offset: int) -> int:
        """Return the offset after transaction markers at the log's end, which are no records."""
        if self._positions[tp] != next_offset:
            return next_offset
        position: int = await self.kafka.position(tp)
        return max(next_offset, position)

    def forget_positions(self) -> None:
        """Stop reading the source partitions until they get new positions."""
        self._positions.clear()
        self._on_hold.clear()

    async def on_thread_stop(self) -> None:
        """Leave the group and close in bounded time; without a broker aiokafka would hang."""
        leaving = asyncio.create_task(super().on_thread_stop())
        await asyncio.wait({leaving}, timeout=_LEAVE_SECONDS)
        leaving.cancel()

    async def watch_partitions(self) -> None:
        """Have the group share out new partitions of its topics.

        This is for its leader to notice. A static member that led before it was restarted leads
        again, but aiokafka does not get to know.
        """
        coordinator = self.kafka._coordinator
        if coordinator._group_instance_id is not None and coordinator._group_subscription is None:
            coordinator._group_subscription = set(self.kafka.subscription())
            coordinator._metadata_snapshot = coordinator._get_metadata_snapshot()

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek the partitions that belong to no source topic."""
        others = [tp for tp in self.assignment() if not self.consumer.is_source(tp)]
        if not others:  # aiokafka seeks all partitions if none is named
            return {}
        return _by_tp(await self.run(self.kafka.seek_to_committed(*_plain(others))))

    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # Faust has no settings for these options; aiokafka reads them at the consumer's start.
        consumer._isolation_level = "read_committed"
        consumer._fetch_max_wait_ms = _FETCH_MILLISECONDS
        consumer._client_rack = self.consumer.sources.client_rack
        create_no_topics(consumer)
        return consumer

    async def _fetch_records(
        self,
        consumer: AIOKafkaConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,
        max_records: int | None = None,
    ) -> dict[TP, list[Any]]:
        readable = {tp for tp in active_partitions if self._is_readable(tp)}
        if not readable:  # aiokafka fetches from all partitions if the set is empty
            await asyncio.sleep(_POLL_SECONDS)
            return {}
        if len(readable) < len(active_partitions):
            timeout = _POLL_SECONDS
        records = await super()._fetch_records(consumer, readable, timeout, max_records)
        return self._fetched({ensure_TP(tp): rows for tp, rows in records.items()})

    def _is_readable(self, tp: TP) -> bool:
        is_read = tp in self._positions and tp not in self._on_hold
        return is_read or not self.consumer.is_source(tp)

    def _fetched(self, records: Mapping[TP, list[Any]]) -> dict[TP, list[Any]]:
        """Return the records as Faust gets them: those of all source partitions as one."""
        found = {tp: rows for tp, rows in records.items() if not self.consumer.is_source(tp)}
        sources = (tp for tp in records if tp not in found)
        batches = [batch for tp in sources for batch in self._packed(tp, records[tp])]
        if batches:
            fetched = Fetched(batches)
            found[fetched.tp] = [fetched]
        return found

    def _packed(self, tp: TP, records: list[Any]) -> list[RecordBatch]:
        if not records or tp not in self._positions:  # revoked in the meantime
            return []
        # There is no await since aiokafka advanced its own position, so both stay equal.
        batches = pack(self._positions[tp], records, self.consumer.sources.batch_records)
        self._positions[tp] = batches[-1].next_offset
        return batches


class Consumer(driver.Consumer):
    """Faust's consumer; `sources` gives the positions of the source partitions."""

    logger = _FAUST
    sources: SourceListener
    _thread: ConsumerThread

    def __init__(self, transport: Transport, *args: Any, **kwargs: Any) -> None:
        self.sources = transport.sources
        super().__init__(transport, *args, **kwargs)
        # Faust drops records below the last offset that it saw, even after a seek backwards.
        self._read_offset = _ReadOffsets(self.sources.topics)

    def is_source(self, tp: TP) -> bool:
        """Tell whether the partition belongs to a source topic."""
        return tp.topic in self.sources.topics

    async def on_start(self) -> None:
        """Prepare the listener, then join the group."""
        await self.sources.start(self)
        await super().on_start()

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Let Faust clear its buffers, then finish the work."""
        self._thread.forget_positions()
        await super().on_partitions_revoked(revoked)
        await self.sources.revoked()

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Open the source partitions; each is read once it has a position."""
        self._thread.forget_positions()
        await self._thread.run(self._thread.watch_partitions())
        self.sources.assigned(frozenset(tp for tp in assigned if self.is_source(tp)))
        await super().on_partitions_assigned(assigned, generation_id)

    def resume_flow(self) -> None:
        """Resume after a rebalance, in which Faust has cleared its buffers."""
        super().resume_flow()
        self.sources.resumed()

    def on_buffer_full(self, tp: TP) -> None:
        """Keep fetching source partitions: the fetcher waits for a full buffer anyway.

        Faust would pause the partition, and sleep a whole second while all are paused.
        """
        if not self.is_source(tp):
            super().on_buffer_full(tp)

    async def _wait_next_records(
        self, timeout: float
    ) -> tuple[Mapping[TP, list[Any]] | None, set[TP] | None]:
        """Poll once what was fetched before is in work: what comes by then makes larger batches."""
        await self.sources.taken()
        return await super()._wait_next_records(timeout)

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Exclude source partitions from Faust's stall detection, which reports idle ones."""
        if not self.is_source(tp):
            super().verify_event_path(now, tp)

    async def read_from(self, positions: Mapping[TP, int]) -> None:
        """Read source partitions from these offsets on."""
        await self._thread.run(self._thread.read_from(positions))

    async def hold(self, tp: TP) -> None:
        """Stop reading a source partition until `read_from` names it."""
        await self._thread.run(self._thread.hold(tp))

    async def committed(self, partitions: Iterable[TP]) -> dict[TP, OffsetAndMetadata]:
        """Return the group's committed offsets; partitions without one are absent."""
        coordinator = self._thread.kafka._coordinator
        return _by_tp(await self._thread.run(committed_offsets(coordinator, _plain(partitions))))

    async def commit_offsets(self, offsets: Mapping[TP, OffsetAndMetadata]) -> None:
        """Commit offsets of assigned partitions; retries while no broker answers."""
        plain = {TopicPartition(*tp): offset for tp, offset in offsets.items()}
        await self._thread.run(self._thread.kafka.commit(plain))

    async def first_offsets(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """Return the logs' first offsets."""
        kafka = self._thread.kafka
        return _by_tp(await self._thread.run(kafka.beginning_offsets(_plain(partitions))))

    async def end_offsets(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """Return the offsets after the last committed record."""
        kafka = self._thread.kafka
        return _by_tp(await self._thread.run(kafka.end_offsets(_plain(partitions))))

    async def offsets_at(self, partitions: Iterable[TP], timestamp: int) -> dict[TP, int | None]:
        """Return the first offsets at or after a time in milliseconds; None without a record."""
        times = dict.fromkeys(_plain(partitions), timestamp)
        offsets = await self._thread.run(self._thread.kafka.offsets_for_times(times))
        return {tp: at and at.offset for tp, at in _by_tp(offsets).items()}

    async def topic_ids(self, topics: Collection[str]) -> TopicIds:
        """Return the ids of topics; those that a broker does not know are absent."""
        return await self._thread.run(topic_ids(self._thread.kafka._client, topics))

    async def foreign_members(self) -> dict[str, str]:
        """Return the members of the group that are no workers, each with its client id and host."""
        return await self._thread.run(self._thread.foreign_members())

    async def lags(self, next_offsets: Mapping[TP, int]) -> dict[TP, int]:
        """Return the number of unread records of each partition that is being read."""
        return await self._thread.run(self._thread.lags(next_offsets))

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)


class Transport(driver.Transport):
    """Faust's aiokafka transport with this module's consumer."""

    Consumer: ClassVar[Any] = Consumer

    def __init__(self, url: Any, app: Any, sources: SourceListener) -> None:
        super().__init__(url, app)
        self.sources = sources


class _ReadOffsets(dict[TP, int | None]):
    """The last offset that Faust saw of each partition; it records none of the source topics."""

    def __init__(self, sources: frozenset[str]) -> None:
        super().__init__()
        self._sources = sources

    def __missing__(self, tp: TP) -> None:
        return None

    def __setitem__(self, tp: TP, offset: int | None) -> None:
        if tp.topic not in self._sources:
            super().__setitem__(tp, offset)


def _plain(partitions: Iterable[TP]) -> list[TopicPartition]:
    return [TopicPartition(*tp) for tp in partitions]


def _by_tp(values: Mapping[TopicPartition, _T]) -> dict[TP, _T]:
    return {ensure_TP(tp): value for tp, value in values.items()}
