"""A worker's partitions without a broker: real parts around logs and offsets in memory."""

import asyncio
import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import orjson
from aiokafka.errors import KafkaConnectionError
from as_records import as_records
from faust.types import TP
from prometheus_client import CollectorRegistry
from worker_settings import change_pace, split

from faust_oslrau.app.errors import TopicError
from faust_oslrau.app.kafka.batches import RecordBatch
from faust_oslrau.app.kafka.topics import OutputTopics
from faust_oslrau.app.kafka.transactions import LostPartitionError, Producers
from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.partitions.assignment import Assignment
from faust_oslrau.app.partitions.delivery import AtLeastOnce
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import FolderStore

FIRST, SECOND = TP("features", 0), TP("features", 1)
_POLL_SECONDS = 0.002


async def until(condition):
    """Return when the condition holds; the test is ended if it never does."""
    while not condition():
        await asyncio.sleep(_POLL_SECONDS)


async def turns(number=20):
    """Let everything run that is ready to."""
    for _ in range(number):
        await asyncio.sleep(0)


def opened():
    """Return an event that is set."""
    event = asyncio.Event()
    event.set()
    return event


SETTINGS = Settings(features=("a", "b"))


def values(number, seed=0):
    """Return the values of so many records."""
    rng = random.Random(seed)
    rows = [(rng.gauss(0, 1), rng.gauss(5, 2)) for _ in range(number)]
    return [orjson.dumps({"a": a, "b": a + b}) for a, b in rows]


def records(tp, found, first=0):
    """Return these values as the records of a partition."""
    return as_records(found, tp.partition, first=first)


def clean_scores(tp, found, settings=None):
    """Return the scores of a partition that was processed at once, without any mishap."""
    pipeline = PartitionPipeline(*tp, settings or SETTINGS)
    return [score.value for score in pipeline.process(records(tp, found)).scores]


class MemoryBroker:
    """Logs, the group's offsets, and the scores that were acknowledged."""

    def __init__(self, *logs):
        self.logs = {TP("features", number): log for number, log in enumerate(logs)}  # values
        self.first = dict.fromkeys(self.logs, 0)
        self.ids = {"features": "id-1"}
        self.group = {}  # what it has committed
        self.scores = defaultdict(list)
        self.is_away = False  # then every question is answered with an error
        self.foreign_members = {}
        self.answering = opened()  # cleared while questions get no answer

    async def answer(self):
        await self.answering.wait()
        if self.is_away:
            raise KafkaConnectionError

    def offsets(self, tp):
        """Return the offsets of the acknowledged scores."""
        return [orjson.loads(score)["offset"] for score in self.scores[tp]]

    def clean(self, tp):
        """Return the scores of a log that is processed at once, without any mishap."""
        return clean_scores(tp, self.logs[tp])

    def committed(self, tp):
        """Return the group's offset, None where there is none."""
        return self.group[tp].offset if tp in self.group else None

    def delete_before(self, tp, offset):
        """Delete a log's first records, as retention does."""
        self.first[tp] = offset


class MemoryConsumer:
    """What a worker asks of its consumer, and the records that it reads."""

    def __init__(self, broker):
        self.broker = broker
        self.positions = {}  # where each partition is read next
        self.on_hold = set()  # partitions that are not read until they get another position

    async def read_from(self, positions):
        self.positions |= positions
        self.on_hold -= positions.keys()

    async def hold(self, tp):
        self.on_hold.add(tp)

    def fetch(self, tp, most=None):
        """Return the next batch, of so many records at most."""
        broker, position = self.broker, self.positions[tp]
        is_beyond = position > len(broker.logs[tp])  # then aiokafka begins at the first record
        start = broker.first[tp] if is_beyond else max(position, broker.first[tp])
        found = records(tp, broker.logs[tp][start:][:most], start)
        batch = RecordBatch(position, found)
        self.positions[tp] = batch.next_offset
        return batch

    async def first_offsets(self, partitions):
        await self.broker.answer()
        return {tp: self.broker.first[tp] for tp in partitions}

    async def end_offsets(self, partitions):
        if partitions:  # of none nobody is asked
            await self.broker.answer()
        return {tp: len(self.broker.logs[tp]) for tp in partitions}

    async def committed(self, partitions):
        await self.broker.answer()
        return {tp: self.broker.group[tp] for tp in partitions if tp in self.broker.group}

    async def topic_ids(self, topics):
        await self.broker.answer()
        return {topic: self.broker.ids[topic] for topic in topics if topic in self.broker.ids}

    async def foreign_members(self):
        await self.broker.answer()
        return self.broker.foreign_members

    async def commit_offsets(self, offsets):
        await self.broker.answer()
        self.broker.group |= offsets

    async def lags(self, next_offsets):
        ends = await self.end_offsets(next_offsets)
        return {tp: ends[tp] - next_offsets[tp] for tp in next_offsets if tp in self.positions}


class MemoryTopics(OutputTopics):
    """Output topics whose broker gives them `granted` partitions."""

    def __init__(self, settings):
        super().__init__(settings, {})
        self.granted = 2

    async def set_up(self):
        if self.partitions == self.granted:
            raise TopicError("this broker adds none")
        self.partitions = self.granted


class MemoryDelivery(AtLeastOnce):
    """Commits as always; what is sent goes to the broker in memory."""

    def __init__(self, settings, consumer):
        super().__init__(settings, None, consumer)
        self.acknowledging = opened()  # cleared while nothing is acknowledged
        self.lost = set()  # partitions that another worker has taken
        self.waiting = 0  # blocks that are to be acknowledged
        self.sent = []  # the number of scores of each acknowledged block
        self._broker = consumer.broker

    async def send(self, tp, block, position):
        self.waiting += 1
        try:
            await self.acknowledging.wait()
        finally:
            self.waiting -= 1
        if tp in self.lost:
            raise LostPartitionError("it has been opened elsewhere")
        self.sent.append(len(block.scores))
        self._broker.scores[tp] += [score.value for score in block.scores]


class GatedStore(FolderStore):
    """Saves when the test opens the gate, or fails with the test's error."""

    def __init__(self, *place):
        super().__init__(*place)
        self.gate = asyncio.Event()
        self.error = None
        self.waiting = 0

    async def save(self, tp, next_offset, data):
        self.waiting += 1
        await self.gate.wait()
        self.waiting -= 1
        if self.error is not None:
            raise self.error
        await super().save(tp, next_offset, data)


class MemoryWorker:
    """A worker's assignment and its parts; its snapshots go to files in `folder`."""

    def __init__(self, folder: Path, broker, store=FolderStore, **changes):
        own, pace = split(changes)
        self.settings = replace(SETTINGS, snapshots=f"folder:{folder}", **own)
        self._pace_before = change_pace(**pace)
        self.broker = broker
        self.consumer = MemoryConsumer(broker)
        self.topics = MemoryTopics(self.settings)
        self.delivery = MemoryDelivery(self.settings, self.consumer)
        self.store = store(folder, self.settings.app_id)
        self.metrics = Metrics(CollectorRegistry(), self.settings)
        self.crashes = []
        self.assignment = Assignment(
            self.settings,
            self.consumer,
            self.topics,
            self.delivery,
            Producers(self.settings.app_id, {}),
            self.store,
            self.metrics,
            self._crash,
        )

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await turns()  # what has just begun must not be cancelled before its first step
        await self.assignment.stop(0)
        change_pace(**self._pace_before)

    @property
    def held(self):
        return self.assignment.held

    def metric(self, name, **labels):
        """Return the value of a series, None where it is not shown."""
        return self.metrics.registry.get_sample_value(f"oslrau_{name}", labels)

    def is_shown(self, tp):
        """Tell whether the partition has series."""
        place = {"topic": tp.topic, "partition": str(tp.partition)}
        return self.metric("missing_offsets_total", **place) is not None

    async def assign(self, *partitions):
        """Give the worker these partitions, and wait until it reads them."""
        self.assignment.assigned(frozenset(partitions))
        await until(lambda: self.assignment.is_open or self.crashes)
        return [self.held[tp] for tp in partitions if tp in self.held]

    async def read(self, tp, most=None):
        """Read a batch and wait until it is done with."""
        partition = self.held[tp]
        await self.assignment.handle(self.consumer.fetch(tp, most))
        await asyncio.sleep(0)  # the batch waits for the lock now, or holds it
        async with partition.lock:
            pass

    async def first_read(self, most=None):
        """Give the worker the first partition, read a batch of it, and return it."""
        (partition,) = await self.assign(FIRST)
        await self.read(FIRST, most)
        return partition

    async def begin(self, tp, most=None):
        """Read a batch and wait until its outputs wait to be acknowledged."""
        waiting = self.delivery.waiting
        await self.assignment.handle(self.consumer.fetch(tp, most))
        await until(lambda: self.delivery.waiting > waiting)

    async def snapshots(self, tp):
        """Return the offsets of a partition's snapshots, the newest first."""
        return [stored.next_offset async for stored in self.store.load(tp)]

    async def _crash(self, error):
        self.crashes.append(error)
