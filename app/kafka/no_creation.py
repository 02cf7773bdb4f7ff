"""Keeps aiokafka's clients from creating topics by asking for them.

A broker with its default configuration creates a topic that a request for metadata names, unless
the request says otherwise (KIP-204, Kafka 0.11). aiokafka's clients have no option for that. They
ask for their topics again and again, so a source topic that somebody deletes would be back at
once, with the broker's number of partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaProducer

_METADATA = 3  # the number of this kind of request in Kafka's protocol


class _Asking:
    """A connection whose requests for metadata create no topics."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def send(self, request: Any) -> Any:
        is_asking = getattr(request, "API_KEY", None) == _METADATA
        return await self._connection.send(_NotCreating(request) if is_asking else request)


class _NotCreating:
    """A request for metadata, which a connection asks for the struct to send.

    The struct's members have the names of Kafka's protocol; versions without this one, of brokers
    before Kafka 0.11, do not send it.
    """

    def __init__(self, request: Any) -> None:
        self._request = request

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Any:
        struct = self._request.prepare(versions)
        struct.allow_auto_topic_creation = False
        return struct


def create_no_topics(user: Any) -> None:
    """Let an aiokafka consumer or producer create no topics from now on.

    aiokafka has no way to replace a request but where its client takes a connection, a name of its
    own in all its versions; without it this fails at the start.
    """
    client = user.client if isinstance(user, AIOKafkaProducer) else user._client
    connect = client._get_conn

    # aiokafka sends nothing but requests for metadata through what this returns.
    async def connected(*node: Any, **options: Any) -> _Asking | None:
        connection = await connect(*node, **options)
        return connection and _Asking(connection)

    client._get_conn = connected
