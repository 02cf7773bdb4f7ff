"""Tells which rights the user lacks: before the work begins, and of what a broker has refused."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from aiokafka.client import ConnectionGroup, CoordinationType
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IncompatibleBrokerVersion,
    KafkaError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

from faust_oslrau.app.errors import BrokerError
from faust_oslrau.app.settings import Settings

from .flexible_request import NO_TAGS, Fields, FlexibleRequest, many, text
from .topic_ids import describe

_DESCRIBE_GROUPS, _VERSION = 15, 5
_LIST_RIGHTS = struct.pack(">?", True)
# Kafka's numbers of operations.
_BITS = {"Read": 3, "Write": 4, "DescribeConfigs": 10}

_REFUSED = {
    GroupAuthorizationFailedError: ("Read", "group"),
    TransactionalIdAuthorizationFailed: ("Write", "transactional id"),
    ClusterAuthorizationFailedError: ("IdempotentWrite", "cluster"),
}


class RightsError(BrokerError):
    """The user lacks rights."""


def reason(error: BaseException, right: str = "Read", resource: str | None = None) -> str:
    """Return why a request fails, in words if it was refused: which right on what is lacking.

    On a topic it is `right`; `resource` is the name of what the error does not name.
    """
    if isinstance(error, TopicAuthorizationFailedError):
        kind = "topic"
    elif type(error) in _REFUSED:
        right, kind = _REFUSED[type(error)]
    else:
        return repr(error)
    named = error.args[0] if error.args else resource
    names = [named] if isinstance(named, str) else sorted(named or ())
    return lacking(right, kind, ", ".join(names))


def lacking(right: str, kind: str, name: str) -> str:
    """Return in words that a right is lacking."""
    return f"no right to {right} on {kind} {name}".rstrip()


Rights = Mapping[str, Collection[str]]
"""The operations that are needed on topics."""


def needed(settings: Settings) -> Rights:
    """Return the operations without which a worker cannot work."""
    outputs = (settings.scores_topic, settings.anomalies_topic, settings.dead_letter_topic)
    kept = filter(None, (settings.snapshots_topic, settings.schemas_topic))
    return {
        **dict.fromkeys(settings.source_topics, ("Read",)),
        **dict.fromkeys(outputs, ("Write",)),
        **dict.fromkeys(kept, ("Read", "Write")),
    }


def wanted(settings: Settings) -> Rights:
    """Return the operations without which a worker lacks something, and works."""
    of_all: Rights = dict.fromkeys(needed(settings), ("DescribeConfigs",))
    return {**of_all, settings.anomalies_topic: ("Read", "DescribeConfigs")}


async def check(client: Any, rights: Rights, group: str | None = None) -> None:
    """Return if an aiokafka client has these rights, and may join the group.

    Raises
    ------
    RightsError
        Some are lacking.
    KafkaError
        No broker answers.
    """
    found = await missing(client, rights)
    if group is not None:
        found += await missing_of_group(client, group)
    if found:
        raise RightsError("; ".join(found))


async def missing(client: Any, rights: Rights) -> list[str]:
    """Return in words which of these rights are lacking, as an aiokafka client is told.

    Of topics that do not exist, and by brokers that do not tell, none are.
    """
    try:
        found = {each.name: each for each in await describe(client, rights)}
    except NotImplementedError:
        return []
    return [
        lacking(right, "topic", topic)
        for topic, operations in rights.items()
        if (of := found.get(topic)) is not None
        for right in _without(of.operations, operations, of.is_forbidden)
    ]


async def missing_of_group(client: Any, group: str) -> list[str]:
    """Return in words that a consumer group may not be joined, if that is so."""
    try:
        node = await client.coordinator_lookup(CoordinationType.GROUP, group)
        if not await client.ready(node, group=ConnectionGroup.COORDINATION):
            return []
        content = many([text(group)]) + _LIST_RIGHTS + NO_TAGS
        request = FlexibleRequest(_DESCRIBE_GROUPS, _VERSION, content, _operations)
        (operations,) = await client.send(node, request, group=ConnectionGroup.COORDINATION)
    except GroupAuthorizationFailedError:
        return [lacking("Read", "group", group)]
    except (NotImplementedError, IncompatibleBrokerVersion, KafkaError):
        # The first group of a cluster has no coordinator yet, for which nobody need wait.
        return []
    return [lacking(right, "group", group) for right in _without(operations, ["Read"])]


def _without(operations: int, rights: Iterable[str], is_forbidden: bool = False) -> list[str]:
    """Return the rights that are not among the operations; none if there are no operations.

    Brokers without an answer give a negative number.
    """
    if operations <= 0 and not is_forbidden:
        return []
    return [right for right in rights if is_forbidden or not operations >> _BITS[right] & 1]


def _operations(answer: Fields) -> list[int]:
    """Return the operations that are allowed on each group."""

    def member() -> None:
        for _ in range(4):  # its id, that of its instance, its client's, its host
            answer.text()
        for _ in range(2):  # what it wants, and has
            answer.blob()
        answer.end()

    def group() -> int:
        answer.number("h")  # error
        for _ in range(4):  # its id, state, type of protocol and protocol
            answer.text()
        answer.many(member)
        operations = answer.number("i")
        answer.end()
        return operations

    answer.number("i")  # throttle time
    return answer.many(group)
