"""The snapshots' topic on a real Kafka."""

import asyncio
import random

import orjson
import pytest
from aiokafka.errors import KafkaError
from faust.types import TP
from stored_snapshots import MANIFEST

from faust_oslrau.app.kafka.transactions import LostPartitionError, Producers
from faust_oslrau.app.snapshots.manifest import manifest_key
from faust_oslrau.app.snapshots.tail import TailReader
from faust_oslrau.app.snapshots.topic import TopicStore
from faust_oslrau.learner.state import Extent

pytestmark = pytest.mark.real_kafka

_TP = TP("features", 0)
_COMPACT = {"cleanup.policy": "compact"}


class _Owner:
    """A worker's store and producers, with partition 0 open; use it as a context manager."""

    def __init__(self, client, topic, app_id="app"):
        arguments = {"bootstrap_servers": client.servers}
        self.producers = Producers(f"{topic}-{app_id}", arguments)
        self.store = TopicStore(topic, app_id, self.producers, arguments)

    async def __aenter__(self):
        await self.producers.open(_TP)
        await self.store.open(_TP)
        return self.store

    async def __aexit__(self, *_):
        await self.store.close()
        await self.producers.close()


async def _stored(store):
    return [(stored.next_offset, stored.data.read()) async for stored in store.load(_TP)]


@pytest.fixture
def topic(client, topic_name):
    client.create(topic_name, 1, **_COMPACT)
    return topic_name


@pytest.fixture
def owner(client, topic):
    return lambda **options: _Owner(client, topic, **options)


def _state(size, seed=0):
    return random.Random(seed).randbytes(size)


def test_a_snapshot_that_waits_when_the_partition_is_revoked_ends_as_lost(owner):
    async def run():
        async with owner() as store:
            under_way = asyncio.create_task(store.save(_TP, 100, Extent.of(_state(2_000_000))))
            waiting = asyncio.create_task(store.save(_TP, 150, Extent.of(b"late")))
            await asyncio.sleep(0)  # both have begun
        return await asyncio.gather(under_way, waiting, return_exceptions=True)

    first, second = asyncio.run(run())
    assert first is None
    assert isinstance(second, LostPartitionError)


def test_a_snapshot_that_was_cut_off_is_not_seen(owner, topic):
    async def run():
        async with owner() as store:
            await store.save(_TP, 1, Extent.of(b"whole"))
        killed = owner()
        await killed.producers.open(_TP)
        await killed.store.open(_TP)
        with pytest.raises(KafkaError, match="killed"):
            async with killed.producers.of(_TP).transaction() as transaction:
                slots = killed.store._slot(_TP)
                await killed.store._write(transaction, _TP, slots, 1, 2, Extent.of(b"half"))
                raise KafkaError("killed")
        async with owner() as store:
            return await _stored(store)

    assert asyncio.run(run()) == [(1, b"whole")]


def test_a_crafted_manifest_gives_way_to_the_snapshots_before_it(owner, client, topic):
    async def open_(content=None):
        async with owner() as store:
            if content is not None:
                await store.save(_TP, 1, Extent.of(content))
            return await _stored(store)

    asyncio.run(open_(b"one"))
    crafted = MANIFEST | {"chunks": [10**12], "previous": 10**12}
    client.send(topic, [(0, orjson.dumps(crafted), manifest_key("app/features/0", 1))])
    assert asyncio.run(open_()) == [(1, b"one")]


def test_chunks_left_over_from_a_longer_snapshot_get_tombstones(owner, client, topic):
    async def run():
        async with owner() as store:
            await store.save(_TP, 1, Extent.of(_state(2_000_000)))
            await store.save(_TP, 2, Extent.of(b"other slot"))
            await store.save(_TP, 3, Extent.of(b"short"))

    asyncio.run(run())
    last = {record.key: record.value for record in client.read(topic)}
    assert [key for key, value in last.items() if value is None] == [
        b"app/features/0/0/1",
        b"app/features/0/0/2",
    ]


def test_deployments_share_a_topic(owner):
    async def run():
        async with owner() as one, owner(app_id="other") as other:
            await one.save(_TP, 1, Extent.of(b"one"))
            for number in range(50):
                await other.save(_TP, number, Extent.of(b"other %d" % number))
        async with owner() as one, owner(app_id="other") as other:
            return await _stored(one), await _stored(other)

    one, other = asyncio.run(run())
    assert one == [(1, b"one")]
    assert other == [(49, b"other 49"), (48, b"other 48")]


@pytest.fixture
def records_read(monkeypatch):
    """A list that grows by each record that a restore reads."""
    found = []
    records = TailReader.records

    async def counted(self, low, high):
        async for record in records(self, low, high):
            found.append(record.offset)
            yield record

    monkeypatch.setattr(TailReader, "records", counted)
    return found


def test_a_restore_does_not_read_the_hundreds_of_snapshots_in_the_tail(owner, records_read):
    state = _state(100_000)

    async def run():
        async with owner() as store:
            for number in range(300):
                await store.save(_TP, number, Extent.of(state))
        records_read.clear()
        async with owner() as store:
            return await _stored(store)

    assert asyncio.run(run()) == [(299, state), (298, state)]
    assert len(records_read) <= 20
