"""Clients that ask for topics that do not exist, on a broker that creates what is asked for."""

import asyncio
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from faust_oslrau.app.kafka.no_creation import create_no_topics

pytestmark = pytest.mark.real_kafka


@pytest.mark.parametrize("creates", [False, True])
@pytest.mark.parametrize("kind", [AIOKafkaProducer, AIOKafkaConsumer])
def test_a_client_creates_a_topic_by_asking_unless_told_not_to(kind, creates, client, topic_name):
    async def ask():
        user = kind(bootstrap_servers=client.servers, request_timeout_ms=2000)
        if not creates:
            create_no_topics(user)
        await user.start()
        try:
            if kind is AIOKafkaConsumer:
                user.subscribe([topic_name])
                await user.getmany(timeout_ms=500)
            else:
                with suppress(KafkaError):
                    await user.partitions_for(topic_name)
        finally:
            await user.stop()

    asyncio.run(ask())
    assert (topic_name in client.topics()) is creates
