"""Reads the ids of topics: a topic that was deleted and recreated has another id.

aiokafka's metadata requests are too old to return them (KIP-516, Kafka 2.8).
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Any, NamedTuple

from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from .flexible_request import NO_TAGS, Fields, FlexibleRequest, many, text

_API_KEY, _VERSION = 3, 11
_NO_ID = bytes(16)
# Do not create the topics, but list the authorized operations.
_OPTIONS = struct.pack(">??", False, True)


TopicIds = dict[str, str | None]
"""Ids of topics; None of a topic that has none. Topics that a broker does not know are absent."""


class TopicAnswer(NamedTuple):
    """What a broker answers of a topic; `operations` are the bits of those that are allowed."""

    error: int
    name: str
    id: bytes
    operations: int

    @property
    def is_forbidden(self) -> bool:
        """Whether the user may not even know of it."""
        return bool(self.error == TopicAuthorizationFailedError.errno)


def _request(topics: Collection[str]) -> FlexibleRequest[list[TopicAnswer]]:
    named = many(_NO_ID + text(topic) + NO_TAGS for topic in topics)
    return FlexibleRequest(_API_KEY, _VERSION, named + _OPTIONS + NO_TAGS, _topics)


def _topics(answer: Fields) -> list[TopicAnswer]:
    """Return what the broker answers of each topic."""

    def broker() -> None:
        answer.number("i")  # node
        answer.text()  # host
        answer.number("i")  # port
        answer.text()  # rack
        answer.end()

    def partition() -> None:
        answer.number("h")  # error
        for _ in range(3):  # number, leader, its epoch
            answer.number("i")
        for _ in range(3):  # replicas, those in sync, those offline
            answer.many(lambda: answer.number("i"))
        answer.end()

    def topic() -> TopicAnswer:
        error = answer.number("h")
        name, topic_id = answer.text(), answer.data(16)
        answer.number("?")  # internal
        answer.many(partition)
        operations = answer.number("i")
        answer.end()
        return TopicAnswer(error, name or "", topic_id, operations)

    answer.number("i")  # throttle time
    answer.many(broker)
    answer.text()  # cluster
    answer.number("i")  # controller
    return answer.many(topic)


async def describe(client: Any, topics: Collection[str]) -> list[TopicAnswer]:
    """Return what a broker answers an aiokafka client of topics, without creating them.

    Raises
    ------
    KafkaError
        No broker answers.
    NotImplementedError
        The broker does not know this version of the request.
    """
    node = client.get_random_node()
    if node is None:
        raise KafkaError("no broker is known")
    answer: list[TopicAnswer] = await client.send(node, _request(topics))
    return answer


async def topic_ids(client: Any, topics: Collection[str]) -> TopicIds:
    """Return the ids of topics by an aiokafka client.

    Raises
    ------
    KafkaError
        No broker answers, or the user may not know of one of the topics.
    """
    try:
        found = await describe(client, topics)
    except NotImplementedError:  # a broker without this version
        return dict.fromkeys(topics)
    forbidden = [each.name for each in found if each.is_forbidden]
    if forbidden:
        raise TopicAuthorizationFailedError(", ".join(forbidden))
    return {
        each.name: None if each.id == _NO_ID else each.id.hex()
        for each in found
        if not each.error or each.id != _NO_ID
    }


def is_recreated(known: str | None, current: str | None) -> bool:
    """Tell whether a topic's id has changed; False if either id is unknown."""
    return known is not None and current is not None and known != current
