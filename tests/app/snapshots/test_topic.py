"""The snapshots' topic on a real Kafka."""

import asyncio
import random
from functools import partial

import orjson
import pytest
from aiokafka.errors import KafkaError
from faust.types import TP
from stored_snapshots import MANIFEST, owned_in_topic, stored

from faust_oslrau.app.kafka.transactions import LostPartitionError
from faust_oslrau.app.snapshots.manifest import manifest_key
from faust_oslrau.app.snapshots.tail import TailReader
from faust_oslrau.learner.state import Extent

pytestmark = pytest.mark.real_kafka

_TP = TP("features", 0)


@pytest.fixture
def topic(client, topic_name):
    client.create(topic_name, 1, **{"cleanup.policy": "compact"})
    return topic_name


@pytest.fixture
def owner(servers, topic):
    """A function that gives the store of a worker that owns the partition for a while."""
    return partial(owned_in_topic, servers, topic, _TP)


def _state(size):
    return random.Random(0).randbytes(size)


async def test_a_snapshot_that_waits_when_the_partition_is_revoked_ends_as_lost(owner):
    async with owner() as store:
        under_way = asyncio.create_task(store.save(_TP, 100, Extent.of(_state(2_000_000))))
        waiting = asyncio.create_task(store.save(_TP, 150, Extent.of(b"late")))
        await asyncio.sleep(0)  # both have begun
    assert await under_way is None
    with pytest.raises(LostPartitionError):
        await waiting


async def test_a_snapshot_that_was_cut_off_is_not_seen(owner):
    async with owner() as store:
        await store.save(_TP, 1, Extent.of(b"whole"))
    async with owner() as killed:
        with pytest.raises(KafkaError, match="killed"):
            async with killed._producers.of(_TP).transaction() as transaction:
                slot = killed._slot(_TP)
                await killed._write(transaction, _TP, slot, 1, 2, Extent.of(b"half"))
                raise KafkaError("killed")
    async with owner() as store:
        assert await stored(store, _TP) == [(1, b"whole")]


async def test_a_crafted_manifest_gives_way_to_the_snapshots_before_it(owner, client, topic):
    async with owner() as store:
        await store.save(_TP, 1, Extent.of(b"one"))
    crafted = orjson.dumps(MANIFEST | {"chunks": [10**12], "previous": 10**12})
    row = (0, crafted, manifest_key("app/features/0", 1))
    await asyncio.to_thread(client.send, topic, [row])
    async with owner() as store:
        assert await stored(store, _TP) == [(1, b"one")]


async def test_chunks_left_over_from_a_longer_snapshot_get_tombstones(owner, client, topic):
    async with owner() as store:
        for offset, state in enumerate((_state(2_000_000), b"other slot", b"short"), 1):
            await store.save(_TP, offset, Extent.of(state))
    found = await asyncio.to_thread(client.read, topic)
    last = {record.key: record.value for record in found}
    assert [key for key, value in last.items() if value is None] == [
        b"app/features/0/0/1", b"app/features/0/0/2",
    ]  # fmt: skip


async def test_deployments_share_a_topic(owner):
    async with owner() as one, owner(app_id="other") as other:
        await one.save(_TP, 1, Extent.of(b"one"))
        for number in range(50):
            await other.save(_TP, number, Extent.of(b"other %d" % number))
    async with owner() as one, owner(app_id="other") as other:
        assert await stored(one, _TP) == [(1, b"one")]
        assert await stored(other, _TP) == [(49, b"other 49"), (48, b"other 48")]


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


async def test_a_restore_does_not_read_the_hundreds_of_snapshots_in_the_tail(owner, records_read):
    state = _state(100_000)
    async with owner() as store:
        for number in range(300):
            await store.save(_TP, number, Extent.of(state))
    records_read.clear()
    async with owner() as store:
        assert await stored(store, _TP) == [(299, state), (298, state)]
    assert len(records_read) <= 20
