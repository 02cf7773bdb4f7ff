"""Reads the group's committed offsets, and waits for transactions that still commit some.

aiokafka's requests are too old to ask the broker for that (KIP-447, Kafka 2.5). Without it, a
broker may answer with the offset from before a transaction that is being committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from aiokafka import OffsetAndMetadata, TopicPartition
from aiokafka.errors import (
    KafkaError,
    NotCoordinatorForGroupError,
    UnknownTopicOrPartitionError,
    for_code,
)
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

logger = logging.getLogger(__name__)

_API_KEY, _VERSION = 9, 7
_TEXT = CompactString("utf-8")
_REQUIRE_STABLE = True
_UNSTABLE_OFFSET_COMMIT = 88  # unknown to aiokafka
_NO_OFFSET = -1
_RETRY_SECONDS = 0.1


class _OffsetFetchResponse(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = _API_KEY
    API_VERSION = _VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("name", _TEXT),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", _TEXT),
                        ("error_code", Int16),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("error_code", Int16),
        ("tags", TaggedFields),
    )


class _OffsetFetchRequest(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = _API_KEY
    API_VERSION = _VERSION
    RESPONSE_TYPE = _OffsetFetchResponse
    SCHEMA = Schema(
        ("group_id", _TEXT),
        (
            "topics",
            CompactArray(
                ("name", _TEXT), ("partitions", CompactArray(Int32)), ("tags", TaggedFields)
            ),
        ),
        ("require_stable", Boolean),
        ("tags", TaggedFields),
    )


class _StableOffsets(Request[_OffsetFetchRequest]):  # type: ignore[misc]
    API_KEY = _API_KEY

    def __init__(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        for topic, number in partitions:
            numbers[topic].append(number)
        self._group = group
        self._topics: list[Any] = [(topic, found, {}) for topic, found in numbers.items()]

    def build(self, request_struct_class: type[_OffsetFetchRequest]) -> _OffsetFetchRequest:
        return request_struct_class(self._group, self._topics, _REQUIRE_STABLE, {})


class _UnstableOffsetError(KafkaError):  # type: ignore[misc]
    retriable = True


async def committed_offsets(
    coordinator: Any, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the committed offsets by an aiokafka group coordinator; those without are absent.

    Wait while no coordinator answers, and while a transaction that holds such an offset is open.

    Raises
    ------
    KafkaError
        The broker refuses.
    """
    told = False
    while partitions:
        await coordinator.ensure_coordinator_known()
        try:
            return await _fetch(coordinator, partitions)
        except NotImplementedError:  # aiokafka's error for a broker without this version
            return dict(await coordinator.fetch_committed_offsets(partitions))
        except KafkaError as error:
            if not error.retriable:
                raise
            if isinstance(error, NotCoordinatorForGroupError):
                coordinator.coordinator_dead()
            if isinstance(error, _UnstableOffsetError) and not told:
                logger.info("waiting for an open transaction with offsets of the group")
                told = True
        await asyncio.sleep(_RETRY_SECONDS)
    return {}


async def _fetch(
    coordinator: Any, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata]:
    answer = await coordinator._send_req(_StableOffsets(coordinator.group_id, partitions))
    _check(answer.error_code)
    offsets = {}
    for topic, found, _ in answer.topics:
        for number, offset, _, metadata, code, _ in found:
            if code == UnknownTopicOrPartitionError.errno:
                continue
            _check(code)
            if offset != _NO_OFFSET:
                offsets[TopicPartition(topic, number)] = OffsetAndMetadata(offset, metadata)
    return offsets


def _check(code: int) -> None:
    if code == _UNSTABLE_OFFSET_COMMIT:
        raise _UnstableOffsetError
    if code != 0:
        raise for_code(code)
