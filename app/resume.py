"""Where the work on a partition goes on after a start, a restart or a rebalance.

The offset at which learning began is recorded as metadata of the group's committed offset: scores
are a function of the log from there on, so it must not be found anew each time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from aiokafka import OffsetAndMetadata
from faust.types import TP

from .errors import TopicError
from .logs import at
from .settings import Settings
from .topic_ids import is_other

logger = logging.getLogger(__name__)

_ANEW = "a topic that was deleted; the one of its name was made anew"


class LostHistoryError(TopicError):
    """Records from which the model learned are gone, so that it cannot be built again."""


class OffsetReader(Protocol):
    """What is asked of the broker."""

    async def committed(self, partitions: Iterable[TP]) -> dict[TP, OffsetAndMetadata]:
        """Return the group's offsets, of those partitions that have one."""

    async def first_offsets(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """Return where the logs begin."""

    async def end_offsets(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """Return the offsets after the last committed record."""

    async def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of topics, as far as the broker gives them any."""

    async def offsets_at(self, partitions: Iterable[TP], timestamp: int) -> dict[TP, int | None]:
        """Return the first offsets at or after a time in milliseconds, None where there is none."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Learning began at offset `start`; outputs for offsets below `emit_from` exist already.

    `recorded` tells whether the group's committed offset says so; `topic_id` is the topic's id,
    None where the broker gives it none.
    """

    start: int
    emit_from: int
    recorded: bool = False
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """What the broker says of a partition: its offsets, and those of the group.

    `configured` is where a new deployment would begin, `recorded` where this one did, in the topic
    with the id `recorded_topic`; `topic_id` is the id of the topic that is there now.
    """

    tp: TP
    first: int
    end: int
    configured: int
    committed: int | None = None
    recorded: int | None = None
    topic_id: str | None = None
    recorded_topic: str | None = None


async def find_logs(
    reader: OffsetReader, partitions: frozenset[TP], settings: Settings
) -> list[PartitionLog]:
    """Ask the broker about the partitions' logs."""
    first = await reader.first_offsets(partitions)
    end = await reader.end_offsets(partitions)
    committed = await reader.committed(partitions)
    configured = await _configured_starts(reader, first, end, settings)
    ids = await reader.topic_ids({tp.topic for tp in partitions})
    return [
        PartitionLog(
            tp,
            first[tp],
            end[tp],
            configured[tp],
            committed[tp].offset if tp in committed else None,
            recorded_start(committed[tp].metadata) if tp in committed else None,
            ids.get(tp.topic),
            recorded_topic(committed[tp].metadata) if tp in committed else None,
        )
        for tp in partitions
    ]


def resume_from(
    log: PartitionLog,
    start: int,
    next_offset: int,
    settings: Settings,
    topic_id: str | None = None,
) -> Resume | None:
    """Decide where the work on a partition goes on with a state, None where it is not its state.

    The state learned from `start` on, in the topic with this id; the outputs for offsets below
    `next_offset` exist.

    Raises
    ------
    LostHistoryError
        Records after the state are gone, and the settings do not say to go on without them.
    """
    if is_other(topic_id, log.topic_id):
        _lose(log, f"the state at offset {next_offset} is of {_ANEW}", settings)
        return None
    if log.recorded not in (None, start):
        recorded = (*log.tp, next_offset, start, log.recorded)
        about = at(log.tp, next_offset)
        logger.error(
            "%s/%d: the state at %d began at %d, not at %d as recorded", *recorded, extra=about
        )
        return None
    done = max(next_offset, log.committed or 0)
    if done > log.end:
        _lose(
            log,
            f"the work is done up to offset {done} but the log ends at {log.end} "
            "(was the topic made anew?)",
            settings,
        )
        return None
    if next_offset < log.first:
        _lose(log, f"the state is at offset {next_offset}, the log begins at {log.first}", settings)
    return Resume(start, max(done, log.first), log.recorded is not None, log.topic_id)


def resume(log: PartitionLog, settings: Settings) -> Resume:
    """Decide where the work on a partition goes on without a state.

    Raises
    ------
    LostHistoryError
        The partition's history is lost and the settings do not say to go on without it.
    """
    if log.committed is None:
        return _begin(log)
    loss = _loss(log, settings)
    if loss is None:
        start = log.configured if log.recorded is None else log.recorded
        emit_from = max(start, log.committed)
        return Resume(start, emit_from, log.recorded is not None, log.topic_id)
    _lose(log, loss, settings)
    return _begin_anew(log, settings)


def start_metadata(start: int, topic_id: str | None = None) -> str:
    """Return the metadata that records where learning began, and in which topic."""
    return json.dumps({"start": start} | ({} if topic_id is None else {"topic_id": topic_id}))


def recorded_start(metadata: str) -> int | None:
    """Return where learning began, None where the offset was committed by something else."""
    start = _recorded(metadata, "start")
    return start if isinstance(start, int) else None


def recorded_topic(metadata: str) -> str | None:
    """Return the id of the topic in which learning began, None where it is not recorded."""
    topic_id = _recorded(metadata, "topic_id")
    return topic_id if isinstance(topic_id, str) else None


def _recorded(metadata: str, name: str) -> Any:
    try:
        return json.loads(metadata)[name]
    except (ValueError, TypeError, KeyError):
        return None


def _lose(log: PartitionLog, loss: str, settings: Settings) -> None:
    message = f"lost history of {log.tp.topic}/{log.tp.partition}: {loss}"
    if settings.lost_history == "refuse":
        raise LostHistoryError(
            f'{message}; lost_history = "continue" goes on without it, a new app_id begins anew'
        )
    said = '%s; going on without it, as lost_history = "continue" says'
    logger.error(said, message, extra=at(log.tp))


def _loss(log: PartitionLog, settings: Settings) -> str | None:
    if is_other(log.recorded_topic, log.topic_id):
        return f"offset {log.committed} is committed in {_ANEW}"
    if log.committed is not None and log.committed > log.end:
        return (
            f"offset {log.committed} is committed but the log ends at {log.end} "
            "(was the topic made anew?)"
        )
    if log.recorded is not None and log.first > log.recorded:
        return f"learning began at offset {log.recorded} but the log now begins at {log.first}"
    if log.recorded is None and not _is_start_certain(log, settings):
        return (
            f"offset {log.committed} is committed without a record of where learning began, "
            f"and the log begins at {log.first}"
        )
    return None


def _is_start_certain(log: PartitionLog, settings: Settings) -> bool:
    """Tell whether the settings alone say where learning began."""
    return settings.start != "latest" and (log.first == 0 or log.configured > log.first)


def _begin_anew(log: PartitionLog, settings: Settings) -> Resume:
    committed = log.committed or 0
    if committed > log.end or is_other(log.recorded_topic, log.topic_id):
        return _begin(log)
    start = committed if settings.start == "latest" else log.configured
    start = max(start, log.first)
    return Resume(start, max(start, committed), topic_id=log.topic_id)


def _begin(log: PartitionLog) -> Resume:
    return Resume(log.configured, log.configured, topic_id=log.topic_id)


async def _configured_starts(
    reader: OffsetReader, first: dict[TP, int], end: dict[TP, int], settings: Settings
) -> dict[TP, int]:
    if settings.start == "earliest":
        return first
    if settings.start_timestamp is None:
        return end
    found = await reader.offsets_at(first, settings.start_timestamp)
    return {tp: end[tp] if found[tp] is None else found[tp] or 0 for tp in first}
