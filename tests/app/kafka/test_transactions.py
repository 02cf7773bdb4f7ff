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
def producers(client, topic_name):
    """A function that returns the producers of a worker; there is a topic to write to."""
    client.create(topic_name)
    return lambda app_id=topic_name: Producers(app_id, {"bootstrap_servers": client.servers})


def _message(value):
    return OutMessage(0, None, value, _NOW)


async def _write(producers, topic, value):
    async with producers.of(_TP).transaction() as transaction:
        await transaction.send(topic, 0, [_message(value)])


def _committed(client, topic):
    """Return the committed values; the broker marks a transaction after it answered the commit."""
    for _ in range(200):
        if found := client.read(topic):
            return [record.value for record in found]
        time.sleep(0.05)
    return []


@pytest.mark.parametrize("sends_before", [False, True])
def test_a_fenced_producer_leaves_no_exception_to_log(sends_before, client, producers, topic_name):
    unretrieved = []

    async def run():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: unretrieved.append(context["message"]))
        zombie, owner = producers(), producers()
        await zombie.open(_TP)
        with pytest.raises(LostPartitionError):
            async with zombie.of(_TP).transaction() as transaction:
                if sends_before:
                    await transaction.send(topic_name, 0, [_message(b"early")])
                await owner.open(_TP)
                await transaction.send(topic_name, 0, [_message(b"late")])
        await _write(owner, topic_name, b"new")
        await zombie.close()
        await owner.close()
        del zombie, transaction
        gc.collect()  # asyncio logs when a future is deleted

    asyncio.run(run())
    gc.collect()
    assert unretrieved == []
    assert _committed(client, topic_name) == [b"new"]


def test_whoever_waits_behind_a_fenced_transaction_has_lost_it_too(producers, topic_name):
    async def run():
        zombie, owner = producers(), producers()
        await zombie.open(_TP)
        await owner.open(_TP)
        writes = (_write(zombie, topic_name, value) for value in (b"first", b"waiting"))
        errors = await asyncio.gather(*writes, return_exceptions=True)
        await zombie.close()
        await owner.close()
        return errors

    assert [type(error) for error in asyncio.run(run())] == [LostPartitionError] * 2


def test_two_that_reopen_a_producer_at_once_fence_no_other(client, producers, topic_name):
    async def write_again(worker, value):
        if worker.of(_TP).has_failed:
            await worker.of(_TP).open()
        await _write(worker, topic_name, value)

    async def run():
        worker = producers()
        await worker.open(_TP)
        with pytest.raises(KafkaConnectionError):
            async with worker.of(_TP).transaction():
                raise KafkaConnectionError
        await asyncio.gather(*(write_again(worker, value) for value in (b"block", b"snapshot")))
        await worker.close()

    asyncio.run(run())
    assert sorted(_committed(client, topic_name)) == [b"block", b"snapshot"]


def test_deployments_whose_names_join_alike_fence_no_other(client, producers, topic_name):
    async def run():
        one, other = producers(topic_name), producers(f"{topic_name}-r")
        await one.open(TP("r-s", 0))
        await other.open(TP("s", 0))
        async with one.of(TP("r-s", 0)).transaction() as transaction:
            await transaction.send(topic_name, 0, [_message(b"written")])
        await one.close()
        await other.close()

    asyncio.run(run())
    assert _committed(client, topic_name) == [b"written"]


def test_a_producer_of_an_earlier_version_is_fenced(client, producers, topic_name):
    async def run():
        arguments = {"bootstrap_servers": client.servers}
        zombie = TransactionalProducer(f"{topic_name}-features-0", arguments)
        await zombie.open()
        owner = producers()
        with pytest.raises(LostPartitionError):
            async with zombie.transaction() as transaction:
                await transaction.send(topic_name, 0, [_message(b"early")])
                await owner.open(_TP)
                await owner.fence_earlier_version(_TP)
                await transaction.send(topic_name, 0, [_message(b"late")])
        await _write(owner, topic_name, b"new")
        await owner.close()

    asyncio.run(run())
    assert _committed(client, topic_name) == [b"new"]
