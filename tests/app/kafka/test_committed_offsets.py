"""Committed offsets of a group on a real Kafka, while a transaction commits some."""

import asyncio
import logging

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, OffsetAndMetadata, TopicPartition

from faust_oslrau.app.brokers import EmbeddedBroker
from faust_oslrau.app.kafka.committed_offsets import committed_offsets

pytestmark = pytest.mark.real_kafka


def _run(client, topic, scenario):
    """Run `scenario(coordinator, producer)` with a group whose offset of partition 0 is 5."""
    partition = TopicPartition(topic, 0)

    async def run():
        consumer = AIOKafkaConsumer(
            bootstrap_servers=client.servers, group_id=topic, enable_auto_commit=False
        )
        producer = AIOKafkaProducer(bootstrap_servers=client.servers, transactional_id=topic)
        await consumer.start()
        await producer.start()
        try:
            consumer.assign([partition])
            async with producer.transaction():
                await _send_offset(producer, partition, 5)
            return await scenario(consumer._coordinator, producer, partition)
        finally:
            await producer.stop()
            await consumer.stop()

    client.create(topic, 2)
    return asyncio.run(run())


async def _send_offset(producer, partition, offset):
    commit = {partition: OffsetAndMetadata(offset, f"at {offset}")}
    await producer.send_offsets_to_transaction(commit, partition.topic)


@pytest.mark.parametrize(("commits", "expected"), [(True, 9), (False, 5)])
def test_an_offset_of_an_open_transaction_is_awaited(commits, expected, client, topic_name, caplog):
    caplog.set_level(logging.INFO, "faust_oslrau")

    async def scenario(coordinator, producer, partition):
        await producer.begin_transaction()
        await _send_offset(producer, partition, 9)
        before = await coordinator.fetch_committed_offsets([partition])
        waiting = asyncio.create_task(committed_offsets(coordinator, [partition]))
        while "waiting for an open transaction" not in caplog.text:
            await asyncio.sleep(0.05)
        assert not waiting.done()
        await (producer.commit_transaction() if commits else producer.abort_transaction())
        return before[partition].offset, (await waiting)[partition]

    without_waiting, found = _run(client, topic_name, scenario)
    assert without_waiting == 5
    assert found == OffsetAndMetadata(expected, f"at {expected}")


def test_partitions_without_an_offset_and_unknown_topics_are_absent(client, topic_name):
    async def scenario(coordinator, producer, partition):
        others = [TopicPartition(partition.topic, 1), TopicPartition("no-such-topic", 0)]
        return await committed_offsets(coordinator, [partition, *others])

    found = _run(client, topic_name, scenario)
    assert {tp.partition: at.offset for tp, at in found.items()} == {0: 5}


def test_a_broker_too_old_to_wait_is_asked_as_aiokafka_does(servers_of_old_broker):
    async def run():
        consumer = AIOKafkaConsumer(
            bootstrap_servers=servers_of_old_broker, group_id="group", enable_auto_commit=False
        )
        await consumer.start()
        try:
            partition = TopicPartition("features", 0)
            consumer.assign([partition])
            await consumer.commit({partition: OffsetAndMetadata(7, "")})
            return await committed_offsets(consumer._coordinator, [partition])
        finally:
            await consumer.stop()

    assert [at.offset for at in asyncio.run(run()).values()] == [7]


@pytest.fixture
def servers_of_old_broker():
    """The embedded broker knows older requests only."""
    with EmbeddedBroker() as embedded:
        embedded.create_topic("features", 1)
        yield embedded.bootstrap_servers
