"""Reads the offsets of logs, the committed offsets, and the offsets where learning began.

The metadata of the group's committed offset record where learning began, and with which initial
model; while settings change, also where the successor began. Scores are a function of them and of
the log from there on, so a restart must not choose others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

import orjson
from aiokafka import OffsetAndMetadata
from aiokafka.errors import UnknownTopicOrPartitionError
from faust.types import TP

from faust_oslrau.app.logs import at
from faust_oslrau.app.settings import Settings

from .topic_ids import TopicIds

logger = logging.getLogger(__name__)

# Since format 2, transactional ids are app_id/topic/partition. Format 1 names no format.
_FORMAT = 2


class OffsetReader(Protocol):
    """Asks the broker for offsets."""

    async def committed(self, partitions: Iterable[TP]) -> dict[TP, OffsetAndMetadata]:
        """Return the group's committed offsets; partitions without one are absent."""

    async def first_offsets(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """Return the logs' first offsets."""

    async def end_offsets(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """Return the offsets after the last committed record."""

    async def topic_ids(self, topics: Collection[str]) -> TopicIds:
        """Return the ids of topics."""

    async def offsets_at(self, partitions: Iterable[TP], timestamp: int) -> dict[TP, int | None]:
        """Return the first offsets at or after a time in milliseconds; None without a record."""


class RecordedSuccessor(NamedTuple):
    """The offset at which a successor began to learn, and the digest of its settings."""

    start: int
    settings: str


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """The offsets of a partition's log and of the consumer group.

    Attributes
    ----------
    first, end
        The first offset of the log, and the offset after its last committed record.
    configured
        Where a new deployment would begin to learn.
    committed
        The group's committed offset; None without one.
    recorded, recorded_topic
        The recorded start of learning, and the id of the topic at that time; None if unknown.
    topic_id
        The current id of the topic; None if the broker assigns no ids.
    recorded_model
        The digest of the initial model with which learning began; None without one.
    recorded_successor
        The pipeline that is to follow with changed settings; None without one.
    """

    tp: TP
    first: int
    end: int
    configured: int
    committed: int | None = None
    recorded: int | None = None
    topic_id: str | None = None
    recorded_topic: str | None = None
    recorded_model: str | None = None
    recorded_successor: RecordedSuccessor | None = None


async def find_logs(
    reader: OffsetReader, partitions: frozenset[TP], settings: Settings
) -> list[PartitionLog]:
    """Ask the broker for the offsets of these partitions.

    Raises
    ------
    KafkaError
        No broker answers, or one that was asked does not know a topic yet.
    """
    first = await reader.first_offsets(partitions)
    end = await reader.end_offsets(partitions)
    committed = await reader.committed(partitions)
    configured = await _configured_starts(reader, first, end, settings)
    _tell_earlier(committed)
    topics = {tp.topic for tp in partitions}
    ids = await reader.topic_ids(topics)
    if unknown := topics - ids.keys():
        raise UnknownTopicOrPartitionError(", ".join(sorted(unknown)))
    return [
        PartitionLog(
            tp,
            first[tp],
            end[tp],
            configured[tp],
            committed[tp].offset if tp in committed else None,
            recorded_start(committed.get(tp)),
            ids[tp.topic],
            recorded_topic(committed.get(tp)),
            recorded_model(committed.get(tp)),
            recorded_successor(committed.get(tp)),
        )
        for tp in partitions
    ]


def _tell_earlier(committed: Mapping[TP, OffsetAndMetadata]) -> None:
    for tp, commit in committed.items():
        start = recorded_start(commit)
        if start is not None and is_of_earlier_version(commit):
            logger.warning(
                "%s/%d: offset %d was committed by an earlier version, or another program that "
                "writes as it did: learning is taken to have begun at %d",
                *(*tp, commit.offset, start),
                extra=at(tp, commit.offset),
            )


@cache
def start_metadata(
    start: int,
    topic_id: str | None = None,
    initial_model: str | None = None,
    successor: RecordedSuccessor | None = None,
) -> str:
    """Return the metadata that record where learning began, in which topic, with which model.

    And where a successor began. Those of a partition are asked for with each block.
    """
    named = {"topic_id": topic_id, "initial_model": initial_model, "successor": successor}
    known = {name: value for name, value in named.items() if value is not None}
    return json.dumps({"start": start, "format": _FORMAT} | known)


def recorded_start(commit: OffsetAndMetadata | None) -> int | None:
    """Return where learning began; None if another program committed the offset."""
    return None if commit is None else _own(commit).get("start")


def recorded_topic(commit: OffsetAndMetadata | None) -> str | None:
    """Return the id of the topic in which learning began; None if it is not recorded."""
    return _recorded_text(commit, "topic_id")


def recorded_model(commit: OffsetAndMetadata | None) -> str | None:
    """Return the digest of the initial model with which learning began; None without one."""
    return _recorded_text(commit, "initial_model")


def recorded_successor(commit: OffsetAndMetadata | None) -> RecordedSuccessor | None:
    """Return where a successor began to learn, and with which settings; None without one."""
    found = None if commit is None else _own(commit).get("successor")
    match found:
        case [int(start), str(settings)] if commit is not None and 0 <= start <= commit.offset:
            return RecordedSuccessor(start, settings)
    return None


def is_of_earlier_version(commit: OffsetAndMetadata) -> bool:
    """Tell whether an earlier version, or another program, committed the offset."""
    return _own(commit).get("format") != _FORMAT


def _recorded_text(commit: OffsetAndMetadata | None, name: str) -> str | None:
    text = None if commit is None else _own(commit).get(name)
    return text if isinstance(text, str) else None


def _own(commit: OffsetAndMetadata) -> dict[str, Any]:
    """Return the metadata of a worker's commit; empty if another program committed it.

    Whoever may commit in the group may write what they like. A worker starts at an integer, and
    never commits an offset before it.
    """
    try:
        found = orjson.loads(commit.metadata)  # which bounds the depth, unlike `json`
    except ValueError:
        return {}
    start = found.get("start") if isinstance(found, dict) else None
    is_own = type(start) is int and 0 <= start <= commit.offset  # True is an int, too
    return found if is_own else {}


async def _configured_starts(
    reader: OffsetReader, first: dict[TP, int], end: dict[TP, int], settings: Settings
) -> dict[TP, int]:
    if settings.start == "earliest":
        return first
    if settings.start_timestamp is None:
        return end
    found = await reader.offsets_at(first, settings.start_timestamp)
    return {tp: end[tp] if found[tp] is None else found[tp] or 0 for tp in first}
