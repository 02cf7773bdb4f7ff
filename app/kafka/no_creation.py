"""Keeps aiokafka's clients from creating topics by asking for them.

A broker with its default configuration creates a topic that a request for metadata names, unless
the request says otherwise (KIP-204, Kafka 0.11). aiokafka's clients have no option for that. They
ask for their topics again and again, so a source topic that somebody deletes would be back at
once, with the broker's number of partitions.
"""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.protocol.metadata import MetadataRequest


class _Asking:
    """A connection whose requests for metadata create no topics."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def send(self, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            request = MetadataRequest(request._topics, allow_auto_topic_creation=False)
        return await self._connection.send(request)


def create_no_topics(user: Any) -> None:
    """Let an aiokafka consumer or producer create no topics from now on."""
    client = user.client if isinstance(user, AIOKafkaProducer) else user._client
    connect = client._get_conn

    # aiokafka sends nothing but requests for metadata through what this returns.
    async def connected(*node: Any, **options: Any) -> _Asking | None:
        connection = await connect(*node, **options)
        return connection and _Asking(connection)

    client._get_conn = connected
