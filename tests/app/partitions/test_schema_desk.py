"""Partitions whose records need schemas, without a broker and a registry."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from aiokafka.errors import KafkaConnectionError
from memory_worker import FIRST, SECOND, MemoryBroker, MemoryWorker, turns, until

from faust_oslrau.app.kafka.transactions import LostPartitionError
from faust_oslrau.app.partitions import schema_desk
from faust_oslrau.app.partitions.schema_desk import SchemaDesk
from faust_oslrau.app.registry import RegistryError
from faust_oslrau.app.settings import RegistrySettings
from faust_oslrau.topics.formats import Acceptance, Schema, codec, framed

FIELDS = [{"name": name, "type": "double"} for name in "ab"]
AVRO = Schema("AVRO", json.dumps({"type": "record", "name": "R", "fields": FIELDS}))
ENCODE = codec("avro", AVRO).encode


def values(schema_id, number):
    return [framed(schema_id, ENCODE({"a": float(i), "b": i % 7.0})) for i in range(number)]


@pytest.fixture(autouse=True)
def retries_at_once(monkeypatch):
    monkeypatch.setattr(schema_desk, "_RETRY_SECONDS", 0.002)
    monkeypatch.setattr(schema_desk, "_ASK_AGAIN_SECONDS", (0.001, 0.001))


class MemoryRegistry:
    """Knows some schemas, or is `behind` for so many questions; it is away for some ids."""

    def __init__(self, *known, behind=0):
        self.known = dict.fromkeys(known, AVRO)
        self.away_for = set()
        self.behind = behind
        self.asked = []

    async def schema(self, schema_id):
        self.asked.append(schema_id)
        if schema_id in self.away_for:
            raise RegistryError("away")
        if len(self.asked) <= self.behind:
            return None
        return self.known.get(schema_id)


class MemoryLog:
    """Acceptances of all workers; `fail` is raised once after what is written, or before."""

    def __init__(self):
        self.accepted = []
        self.fail_after = self.fail_before = None

    async def load(self, tp, topic_id):
        return [accepted for place, accepted in self.accepted if place == tp]

    async def save(self, tp, topic_id, accepted, producer):
        self._fail_by("fail_before", producer)
        self.accepted += [(tp, each) for each in accepted]
        self._fail_by("fail_after", producer)

    def _fail_by(self, name, producer):
        error = getattr(self, name)
        setattr(self, name, None)
        if error is not None:
            producer.has_failed = True
            raise error


class MemoryProducer:
    has_failed = False

    def __init__(self):
        self.opened = []
        self.opening = object()

    async def open(self):
        self.has_failed = False
        self.opening = object()
        for each in self.opened:
            each()


class Worker(MemoryWorker):
    """A worker in memory whose records are Avro."""

    def __init__(self, folder, broker, registry, log=None, **changes):
        at = RegistrySettings(url="http://r")
        super().__init__(folder, broker, format="avro", registry=at, **changes)
        self.producer = MemoryProducer()
        desk = SchemaDesk(self.settings, SimpleNamespace(of=lambda tp: self.producer), {})
        desk._registry, desk._log = registry, log or MemoryLog()
        self.desk = desk
        self.assignment._schemas = desk
        # Without transactions: nothing of this worker is in Kafka.
        self.assignment._open_producers = _nothing

    def reads(self, tp):
        return tp not in self.consumer.on_hold


async def _nothing(*_):
    pass


async def read_to(worker, tp, offset):
    """Read until all records before an offset are done with."""

    async def reading():
        while worker.held[tp].next_offset < offset:
            if worker.reads(tp) and worker.consumer.positions[tp] < len(worker.broker.logs[tp]):
                await worker.read(tp)
            await asyncio.sleep(0.001)

    await asyncio.wait_for(reading(), 120)


async def test_other_partitions_and_snapshots_go_on_while_one_waits(tmp_path):
    registry = MemoryRegistry(1)
    broker = MemoryBroker(values(1, 20) + values(2, 30), values(1, 40))
    registry.away_for = {2}
    async with Worker(tmp_path, broker, registry) as worker:
        held, _ = await worker.assign(FIRST, SECOND)
        await read_to(worker, FIRST, 20)
        await until(lambda: held.metrics.awaited_schemas == 1)
        await worker.assignment.save_snapshot(held, now=True)
        assert await worker.snapshots(FIRST) == [20]
        await read_to(worker, SECOND, 40)
        registry.known[2], registry.away_for = AVRO, set()
        await read_to(worker, FIRST, 50)
        assert held.metrics.awaited_schemas == 0
        assert broker.offsets(FIRST) == list(range(50))


async def test_a_partition_that_waits_is_neither_read_nor_in_work(tmp_path, caplog):
    registry = MemoryRegistry()
    registry.away_for = {1}
    broker = MemoryBroker(values(1, 50))
    async with Worker(tmp_path, broker, registry) as worker:
        (held,) = await worker.assign(FIRST)
        await worker.read(FIRST)
        await until(lambda: len(registry.asked) > 5)
        assert not worker.reads(FIRST)
        assert not held.lock.locked() and held.waiting is None
        assert caplog.text.count("waits for schema 1") == 1
        worker.assignment.resumed()
        await turns()
        assert not worker.reads(FIRST)
        assert await worker.assignment.revoked(1)
        await worker.assign(FIRST)  # it was parked, and is read again
        assert worker.reads(FIRST)
        registry.away_for = set()
        registry.known[1] = AVRO
        await read_to(worker, FIRST, 50)


async def test_what_may_have_been_written_is_read_and_not_decided_anew(tmp_path):
    registry, log = MemoryRegistry(), MemoryLog()
    log.fail_after = KafkaConnectionError()
    broker = MemoryBroker(values(1, 5))
    async with Worker(tmp_path, broker, registry, log) as worker:
        (held,) = await worker.assign(FIRST)
        await read_to(worker, FIRST, 5)
        assert held.metrics.dead_letters["unknown_schema"] == 5
        assert log.accepted == [(FIRST, Acceptance(1, None, 0, 5))]


@pytest.mark.parametrize("by", ["a failed write", "a snapshot"])
async def test_what_another_worker_has_accepted_holds_as_the_producer_is_opened_again(by, tmp_path):
    log, others = MemoryLog(), (FIRST, Acceptance(1, AVRO, 0, None))
    broker = MemoryBroker(values(1, 5))
    async with Worker(tmp_path, broker, MemoryRegistry(), log) as worker:
        if by == "a failed write":
            log.fail_before = KafkaConnectionError()
            worker.producer.opened.append(lambda: log.accepted.append(others))
        await worker.assign(FIRST)
        if by == "a snapshot":
            log.accepted.append(others)
            await worker.producer.open()
        await read_to(worker, FIRST, 5)
        assert log.accepted == [others]
        assert broker.offsets(FIRST) == list(range(5))


async def test_a_partition_that_another_worker_owns_is_given_up(tmp_path):
    log = MemoryLog()
    log.fail_before = LostPartitionError("it has been opened elsewhere")
    async with Worker(tmp_path, MemoryBroker(values(1, 5)), MemoryRegistry(1), log) as worker:
        await worker.first_read()
        await until(lambda: FIRST not in worker.held)
        assert worker.broker.scores[FIRST] == []


@pytest.mark.parametrize("behind", [1, 2, 3])
async def test_a_registry_that_is_a_moment_behind_is_asked_again(behind, tmp_path):
    registry, log = MemoryRegistry(1, behind=behind), MemoryLog()
    async with Worker(tmp_path, MemoryBroker(values(1, 5)), registry, log) as worker:
        (held,) = await worker.assign(FIRST)
        await read_to(worker, FIRST, 5)
        assert registry.asked == [1] * min(behind + 1, 3)
        rejected = 5 if behind == 3 else 0
        assert held.metrics.dead_letters["unknown_schema"] == rejected
        accepted = Acceptance(1, None, 0, 5) if rejected else Acceptance(1, AVRO, 0, None)
        assert log.accepted == [(FIRST, accepted)]  # once, as replay reads it


async def test_a_flood_of_ids_is_asked_for_in_parts(tmp_path):
    flood = [framed(number, b"x") for number in range(1, 151)]
    registry = MemoryRegistry()
    async with Worker(tmp_path, MemoryBroker(flood), registry) as worker:
        (held,) = await worker.assign(FIRST)
        await read_to(worker, FIRST, 150)
        assert held.metrics.dead_letters["unknown_schema"] == 150
        assert sorted(registry.asked) == list(range(1, 151))


async def test_an_id_that_never_has_a_schema_is_asked_for_less_and_less_often(tmp_path):
    registry, log = MemoryRegistry(), MemoryLog()
    async with Worker(tmp_path, MemoryBroker(values(1, 5000)), registry, log) as worker:
        (held,) = await worker.assign(FIRST)
        while held.next_offset < 3500:
            if worker.reads(FIRST):
                await worker.read(FIRST, 1)
            await turns(1)
        stretches = [(accepted.start, accepted.end) for _, accepted in log.accepted]
        assert stretches[:5] == [(0, 1), (1, 3), (3, 7), (7, 15), (15, 31)]
        assert stretches[-1][1] - stretches[-1][0] == 1001
        assert len(registry.asked) < 20
        registry.known[1] = AVRO
        await read_to(worker, FIRST, 5000)
        assert log.accepted[-1][1] == Acceptance(1, AVRO, stretches[-1][1], None)


async def test_a_partition_that_is_opened_anew_meanwhile_decides_alone(tmp_path):
    registry, log = MemoryRegistry(), MemoryLog()
    registry.away_for = {1}
    broker = MemoryBroker(values(1, 50))
    async with Worker(tmp_path, broker, registry, log, lost_history="continue") as worker:
        (former,) = await worker.assign(FIRST)
        await worker.read(FIRST)
        await until(lambda: former.metrics.awaited_schemas == 1)
        broker.logs[FIRST], broker.ids["features"] = values(1, 5), "id-2"
        async with former.lock:
            worker.assignment.reopen(former, "its topic was deleted and recreated")
        await until(lambda: worker.held.get(FIRST, former) is not former)
        registry.away_for = set()
        await read_to(worker, FIRST, 5)
        await asyncio.sleep(0.05)
        assert log.accepted == [(FIRST, Acceptance(1, None, 0, 5))]
