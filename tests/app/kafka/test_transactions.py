"""The transactional producers of partitions on a real Kafka."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest
from faust.types import TP

from faust_oslrau.app.kafka.transactions import LostPartitionError, Producers
from faust_oslrau.topics import OutMessage

pytestmark = pytest.mark.real_kafka

_TP = TP("features", 0)
_NOW = int(time.time() * 1000)


@pytest.fixture
def producers(client, topic_name):
    """A function that returns the producers of a worker."""
    return lambda app_id=topic_name: Producers(app_id, {"bootstrap_servers": client.servers})


def _message(value):
    return OutMessage(0, None, value, _NOW)


async def _write(producers, topic, value):
    async with producers.of(_TP).transaction() as transaction:
        await transaction.send(topic, 0, [_message(value)])


@pytest.mark.parametrize("sends_before", [False, True])
def test_a_fenced_producer_leaves_no_exception_that_asyncio_logs(
    sends_before, client, producers, topic_name
):
    client.create(topic_name)
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
    assert [record.value for record in client.read(topic_name)] == [b"new"]
