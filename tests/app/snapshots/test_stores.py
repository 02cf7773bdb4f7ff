"""What every store of snapshots promises: in a folder, in object storage, in a topic."""

import random

import pytest
from faust.types import TP
from obstore.store import MemoryStore
from stored_snapshots import owned, owned_in_topic, stored

from faust_oslrau.app.kafka.transactions import LostPartitionError
from faust_oslrau.app.snapshots import FolderStore
from faust_oslrau.app.snapshots.bucket import BucketStore, bucket_store
from faust_oslrau.learner.state import Extent

_TP = TP("features", 3)
_FENCED = ["memory", "s3", pytest.param("topic", marks=pytest.mark.real_kafka)]


@pytest.fixture(params=["folder", *_FENCED])
def owner(request, tmp_path):
    """A function that gives the store of another worker that owns the partition."""
    if request.param == "topic":
        client, topic = request.getfixturevalue("client"), request.getfixturevalue("topic_name")
        client.create(topic, 4, **{"cleanup.policy": "compact"})
        return lambda: owned_in_topic(client.servers, topic, _TP)
    if request.param == "folder":
        return lambda: owned(FolderStore(tmp_path, "app"), _TP)
    if request.param == "memory":
        objects = MemoryStore()
        return lambda: owned(BucketStore(objects, "memory://", "app"), _TP)
    address = request.getfixturevalue("address")
    return lambda: owned(bucket_store(address, "app"), _TP)


def _state(offset):
    return random.Random(offset).randbytes(2_500_000 - offset)


async def _save(store, *offsets):
    for offset in offsets:
        await store.save(_TP, offset, Extent.of(_state(offset)))


async def _offsets(store):
    """Return the offsets of the snapshots, which have to be whole, in the store's order."""
    found = await stored(store, _TP)
    assert all(content == _state(offset) for offset, content in found)
    return [offset for offset, _ in found]


async def test_the_two_newest_are_kept_whole_also_for_the_next_owner(owner):
    async with owner() as store:
        assert await _offsets(store) == []
        await _save(store, 5, 30, 200)
        assert await _offsets(store) == [200, 30]
    async with owner() as store:
        assert await _offsets(store) == [200, 30]


async def test_a_rejected_snapshot_gives_way_to_the_next(owner):
    async with owner() as store:
        await _save(store, 10, 20)
        newest = await anext(store.load(_TP))
        await store.reject(_TP, newest)
        await _save(store, 12)
        assert await _offsets(store) == [12, 10]


async def test_discarded_snapshots_are_gone_for_the_next_owner_too(owner):
    async with owner() as store:
        await _save(store, 10, 20)
        await store.discard(_TP)
        assert await _offsets(store) == []
    async with owner() as store:
        assert await _offsets(store) == []
        await _save(store, 5)
        assert await _offsets(store) == [5]


@pytest.mark.parametrize("owner", _FENCED, indirect=True)
async def test_a_former_owner_saves_nothing_and_the_next_one_goes_on(owner):
    async with owner() as former:
        await _save(former, 10)
        async with owner() as heir:
            await _save(heir, 15)
            with pytest.raises(LostPartitionError):
                await _save(former, 20)
            assert await _offsets(heir) == [15, 10]
            await _save(heir, 30)
    async with owner() as store:
        assert await _offsets(store) == [30, 15]
