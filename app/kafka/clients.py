"""Kafka clients for commands, which fail if the broker is unavailable; a worker waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from faust_oslrau.app.errors import BrokerError, TopicError
from faust_oslrau.app.settings import Settings

from .access import check_access
from .no_creation import create_no_topics
from .rights import check
from .security import client_arguments


class Client(Protocol):
    """A producer or consumer of aiokafka."""

    async def start(self) -> None:
        """Connect."""

    async def stop(self) -> None:
        """Disconnect."""


AnyClient = TypeVar("AnyClient", bound=Client)


@asynccontextmanager
async def connected(client: AnyClient, settings: Settings) -> AsyncIterator[AnyClient]:
    """Connect a client, which creates no topics, for the duration of the context.

    Raises
    ------
    BrokerError
        The broker is unavailable or refuses the client.
    """
    create_no_topics(client)
    try:
        await _start(client, settings)
        yield client
    finally:
        # Not awaited directly: aiokafka's consumer is cancelled if it stops while a fetch fails.
        await asyncio.gather(client.stop(), return_exceptions=True)


@asynccontextmanager
async def connected_admin(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    """Connect an admin client for the duration of the context.

    Raises
    ------
    BrokerError
        The broker is unavailable or refuses the client.
    """
    admin = AIOKafkaAdminClient(**client_arguments(settings))
    try:
        await _start(admin, settings)
        yield admin
    finally:
        await admin.close()


async def partition_count(admin: AIOKafkaAdminClient, topic: str) -> int:
    """Return the number of partitions of a topic.

    Raises
    ------
    RightsError
        The user may not know of it.
    TopicError
        There is no such topic.
    """
    # Describe all topics: some brokers create a topic that a request names.
    for described in await admin.describe_topics():
        if described["topic"] == topic and described["partitions"]:
            return len(described["partitions"])
    await check(admin._client, {topic: ["Read"]})  # among all topics, a forbidden one is absent
    raise TopicError(f"topic {topic}: expected to exist, the broker does not know it")


async def _start(client: Client | AIOKafkaAdminClient, settings: Settings) -> None:
    try:
        await client.start()
    except (KafkaError, OSError) as error:
        await check_access(client_arguments(settings))
        raise BrokerError(f"no Kafka broker at {settings.broker}: {error}") from error
    if settings.security.uses_token:  # aiokafka's clients start with a refused one, too
        await check_access(client_arguments(settings))
