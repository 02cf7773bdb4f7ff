"""Reads the ids of topics: a topic that was deleted and recreated has another id.

aiokafka's metadata requests are too old to return them (KIP-516, Kafka 2.8).
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
# Do not create the topics, and do not list the authorized operations.
_NO_OPTIONS = (False, False)


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
        return request_struct_class(self._topics, *_NO_OPTIONS, {})


async def topic_ids(client: Any, topics: Iterable[str]) -> dict[str, str]:
    """Return the ids of topics by an aiokafka client; topics without an id are absent.

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
    except NotImplementedError:  # aiokafka's error for a broker without this version
        return {}
    return {name: _text(*halves) for _, name, halves, *_ in answer.topics if any(halves)}


def is_recreated(known: str | None, current: str | None) -> bool:
    """Tell whether a topic's id has changed; False if either id is unknown."""
    return known is not None and current is not None and known != current


def _text(high: int, low: int) -> str:
    return f"{high & _MASK:016x}{low & _MASK:016x}"
