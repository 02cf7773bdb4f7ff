"""The transactional producers of partitions on a real Kafka."""

import asyncio
import gc
import time

import pytest
from aiokafka.errors import KafkaConnectionError
from faust.types import TP

from faust_oslrau.app.kafka.transactions import LostPartitionError, Producers, TransactionalProducer
from faust_oslrau.topics import OutMessage

pytestmark = pytest.mark.real_kafka

_TP = TP("features", 0)
_NOW = int(time.time() * 1000)


@pytest.fixture
def producers(client, servers, topic_name):
    """A function that returns the producers of a worker; there is a topic to write to."""
    client.create(topic_name)
    return lambda app_id=topic_name: Producers(app_id, {"bootstrap_servers": servers})


@pytest.fixture
def committed(client, topic_name):
    """A function that returns the committed values of the topic.

    The broker marks a transaction after it answered the commit.
    """

    async def committed():
        for _ in range(200):
            if found := await asyncio.to_thread(client.read, topic_name):
                return [record.value for record in found]
            await asyncio.sleep(0.05)
        return []

    return committed


def _message(value):
    return OutMessage(0, None, value, _NOW)


async def _write(producers, topic, value, tp=_TP):
    async with producers.of(tp).transaction() as transaction:
        await transaction.send(topic, 0, [_message(value)])


async def _close(*all_producers):
    for each in all_producers:
        await each.close()


@pytest.mark.parametrize("is_earlier_version", [False, True])
@pytest.mark.parametrize("sends_before", [False, True])
async def test_a_fenced_producer_writes_nothing_and_leaves_no_exception_to_log(
    sends_before, is_earlier_version, servers, producers, committed, topic_name
):
    unretrieved = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unretrieved.append(context["message"]))
    zombies, owner = producers(), producers()
    zombie = TransactionalProducer(f"{topic_name}-features-0", {"bootstrap_servers": servers})
    await (zombie.open() if is_earlier_version else zombies.open(_TP))
    with pytest.raises(LostPartitionError):
        async with (zombie if is_earlier_version else zombies.of(_TP)).transaction() as transaction:
            if sends_before:
                await transaction.send(topic_name, 0, [_message(b"early")])
            await owner.open(_TP)
            if is_earlier_version:
                await owner.fence_earlier_version(_TP)
            await transaction.send(topic_name, 0, [_message(b"late")])
    await _write(owner, topic_name, b"new")
    await _close(zombies, owner)
    del zombies, zombie, transaction
    gc.collect()  # asyncio logs when a future is deleted
    assert unretrieved == []
    assert await committed() == [b"new"]


async def test_whoever_waits_behind_a_fenced_transaction_has_lost_it_too(producers, topic_name):
    zombie, owner = producers(), producers()
    await zombie.open(_TP)
    await owner.open(_TP)
    writes = (_write(zombie, topic_name, value) for value in (b"first", b"waiting"))
    errors = await asyncio.gather(*writes, return_exceptions=True)
    await _close(zombie, owner)
    assert [type(error) for error in errors] == [LostPartitionError] * 2


async def test_two_that_reopen_a_producer_at_once_fence_no_other(producers, committed, topic_name):
    worker = producers()

    async def write_again(value):
        if worker.of(_TP).has_failed:
            await worker.of(_TP).open()
        await _write(worker, topic_name, value)

    await worker.open(_TP)
    with pytest.raises(KafkaConnectionError):
        async with worker.of(_TP).transaction():
            raise KafkaConnectionError
    await asyncio.gather(write_again(b"block"), write_again(b"snapshot"))
    await worker.close()
    assert sorted(await committed()) == [b"block", b"snapshot"]


async def test_deployments_whose_names_join_alike_fence_no_other(producers, committed, topic_name):
    one, other = producers(topic_name), producers(f"{topic_name}-r")
    await one.open(TP("r-s", 0))
    await other.open(TP("s", 0))
    await _write(one, topic_name, b"written", TP("r-s", 0))
    await _close(one, other)
    assert await committed() == [b"written"]
