"""Clients that ask for topics that do not exist, on a broker that creates what is asked for."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from faust_oslrau.app.kafka.no_creation import create_no_topics


@pytest.mark.real_kafka
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


class _Request:
    """A request for metadata of which no more is known than what a connection asks it for."""

    API_KEY = 3

    def prepare(self, versions):
        return SimpleNamespace(allow_auto_topic_creation=True, versions=versions)


def test_a_request_is_asked_for_nothing_but_its_struct():
    async def send(request):
        return request.prepare({3: (0, 5)})

    async def connection(node):
        return SimpleNamespace(send=send)

    user = SimpleNamespace(_client=SimpleNamespace(_get_conn=connection))
    create_no_topics(user)

    async def ask():
        return await (await user._client._get_conn(1)).send(_Request())

    sent = asyncio.run(ask())
    assert (sent.allow_auto_topic_creation, sent.versions) == (False, {3: (0, 5)})
