"""Committed offsets of a group on a real Kafka, while a transaction commits some."""

import asyncio
import logging

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, OffsetAndMetadata, TopicPartition

from faust_oslrau.app.kafka.committed_offsets import committed_offsets


@pytest.mark.real_kafka
@pytest.mark.parametrize(("commits", "expected"), [(True, 9), (False, 5)])
async def test_an_offset_of_an_open_transaction_is_awaited(
    commits, expected, servers, client, topic_name, caplog
):
    caplog.set_level(logging.INFO, "faust_oslrau")
    await asyncio.to_thread(client.create, topic_name, 2)
    first, second = (TopicPartition(topic_name, number) for number in range(2))

    async def send_offset(offset):
        commit = {first: OffsetAndMetadata(offset, f"at {offset}")}
        await producer.send_offsets_to_transaction(commit, topic_name)

    async with (
        AIOKafkaConsumer(
            bootstrap_servers=servers, group_id=topic_name, enable_auto_commit=False
        ) as consumer,
        AIOKafkaProducer(bootstrap_servers=servers, transactional_id=topic_name) as producer,
    ):
        consumer.assign([first])
        coordinator = consumer._coordinator
        async with producer.transaction():
            await send_offset(5)
        await producer.begin_transaction()
        await send_offset(9)
        before = await coordinator.fetch_committed_offsets([first])
        waiting = asyncio.create_task(committed_offsets(coordinator, [first, second]))
        while "waiting for an open transaction" not in caplog.text:
            await asyncio.sleep(0.05)
        assert not waiting.done()
        await (producer.commit_transaction() if commits else producer.abort_transaction())
        assert before[first].offset == 5  # without waiting
        assert await waiting == {first: OffsetAndMetadata(expected, f"at {expected}")}
