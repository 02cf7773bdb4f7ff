"""The ids that brokers give to topics: a topic that was deleted and made anew has another one.

aiokafka asks for versions of the metadata that do not know them (KIP-516, Kafka 2.8).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

_API_KEY, _VERSION = 3, 11
_TEXT = CompactString("utf-8")
_UUID = Schema(("high", Int64), ("low", Int64))
_MASK = 2**64 - 1
# Leave to create the topics, and wish to be told what may be done with them.
_NEITHER = (False, False)


class _MetadataResponse(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = _API_KEY
    API_VERSION = _VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", _TEXT),
                ("port", Int32),
                ("rack", _TEXT),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", _TEXT),
                ("topic_id", _UUID),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _MetadataRequest(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = _API_KEY
    API_VERSION = _VERSION
    RESPONSE_TYPE = _MetadataResponse
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _UUID), ("name", _TEXT), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _TopicIds(Request[_MetadataRequest]):  # type: ignore[misc]
    API_KEY = _API_KEY

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics: list[Any] = [((0, 0), topic, {}) for topic in topics]

    def build(self, request_struct_class: type[_MetadataRequest]) -> _MetadataRequest:
        return request_struct_class(self._topics, *_NEITHER, {})


async def topic_ids(client: Any, topics: Iterable[str]) -> dict[str, str]:
    """Return the ids of those topics that have one, as far as an aiokafka client's broker tells.

    Raises
    ------
    KafkaError
        No broker answers.
    """
    node = client.get_random_node()
    if node is None:
        raise KafkaError("no broker is known")
    try:
        answer = await client.send(node, _TopicIds(topics))
    except NotImplementedError:  # what aiokafka makes of a broker that does not know the version
        return {}
    return {name: _text(*found) for _, name, found, *_ in answer.topics if any(found)}


def is_recreated(one: str | None, other: str | None) -> bool:
    """Tell whether two ids are those of different topics, as far as both are known."""
    return one is not None and other is not None and one != other


def _text(high: int, low: int) -> str:
    return f"{high & _MASK:016x}{low & _MASK:016x}"
