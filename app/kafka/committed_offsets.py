"""Reads the group's committed offsets, and waits for transactions that still commit some.

aiokafka's requests are too old to ask the broker for that (KIP-447, Kafka 2.5). Without it, a
broker may answer with the offset from before a transaction that is being committed.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from aiokafka import OffsetAndMetadata, TopicPartition
from aiokafka.errors import (
    KafkaError,
    NotCoordinatorForGroupError,
    UnknownTopicOrPartitionError,
    for_code,
)

from .flexible_request import NO_TAGS, Fields, FlexibleRequest, many, text

logger = logging.getLogger(__name__)

_API_KEY, _VERSION = 9, 7
_REQUIRE_STABLE = struct.pack(">?", True)
_UNSTABLE_OFFSET_COMMIT = 88  # unknown to aiokafka
_NO_OFFSET = -1
_RETRY_SECONDS = 0.1


class _Committed(NamedTuple):
    partition: TopicPartition
    offset: int
    metadata: str
    error_code: int


def _request(
    group: str, partitions: Iterable[TopicPartition]
) -> FlexibleRequest[tuple[int, list[_Committed]]]:
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        numbers[topic].append(number)
    topics = many(
        text(topic) + many(struct.pack(">i", number) for number in found) + NO_TAGS
        for topic, found in numbers.items()
    )
    content = text(group) + topics + _REQUIRE_STABLE + NO_TAGS
    return FlexibleRequest(_API_KEY, _VERSION, content, _offsets)


def _offsets(answer: Fields) -> tuple[int, list[_Committed]]:
    """Return an error's code, and what is committed for each partition."""

    def partition(topic: str) -> _Committed:
        number, offset = answer.number("i"), answer.number("q")
        answer.number("i")  # epoch of the leader
        metadata, code = answer.text(), answer.number("h")
        answer.end()
        return _Committed(TopicPartition(topic, number), offset, metadata or "", code)

    def topic() -> list[_Committed]:
        name = answer.text() or ""
        found = answer.many(lambda: partition(name))
        answer.end()
        return found

    answer.number("i")  # throttle time
    topics = answer.many(topic)
    return answer.number("h"), [each for found in topics for each in found]


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
        except NotImplementedError:  # a broker without this version
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
    code, found = await coordinator._send_req(_request(coordinator.group_id, partitions))
    _check(code)
    offsets = {}
    for partition, offset, metadata, code in found:
        if code == UnknownTopicOrPartitionError.errno:
            continue
        _check(code)
        if offset != _NO_OFFSET:
            offsets[partition] = OffsetAndMetadata(offset, metadata)
    return offsets


def _check(code: int) -> None:
    if code == _UNSTABLE_OFFSET_COMMIT:
        raise _UnstableOffsetError
    if code != 0:
        raise for_code(code)
