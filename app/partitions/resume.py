"""Where the work on a partition continues after a start, a restart or a rebalance."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from faust_oslrau.app.errors import TopicError
from faust_oslrau.app.kafka.positions import PartitionLog
from faust_oslrau.app.kafka.topic_ids import is_other
from faust_oslrau.app.logs import at
from faust_oslrau.app.settings import Settings

logger = logging.getLogger(__name__)

_ANEW = "a topic that was deleted; the one of its name was made anew"


class LostHistoryError(TopicError):
    """Records from which the model learned are gone, so that it cannot be built again."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Learning began at offset `start`; outputs for offsets below `emit_from` exist already.

    `committed` is the group's committed offset, None where it does not record `start`; `topic_id`
    is the topic's id, None where the broker gives it none.
    """

    start: int
    emit_from: int
    committed: int | None = None
    topic_id: str | None = None


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
    return Resume(start, max(done, log.first), _with_start(log), log.topic_id)


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
        return Resume(start, emit_from, _with_start(log), log.topic_id)
    _lose(log, loss, settings)
    return _begin_anew(log, settings)


def _with_start(log: PartitionLog) -> int | None:
    """Return the committed offset, None where its metadata do not record the start."""
    return None if log.recorded is None else log.committed


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
