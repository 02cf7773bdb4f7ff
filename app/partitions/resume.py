"""Decides at which offsets a partition continues after a start, a restart or a rebalance."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from faust_oslrau.app.errors import SettingsError, TopicError
from faust_oslrau.app.kafka.positions import PartitionLog
from faust_oslrau.app.kafka.topic_ids import is_recreated
from faust_oslrau.app.logs import at
from faust_oslrau.app.pipeline import initial_digest
from faust_oslrau.app.settings import Settings, short

logger = logging.getLogger(__name__)

_DELETED_TOPIC = "a topic that was deleted and recreated"


class LostHistoryError(TopicError):
    """The log no longer holds the records that the model needs."""


class ForeignOffsetError(TopicError):
    """Another program committed an offset of the group; earlier records would get no scores."""


class OtherModelError(SettingsError):
    """The partition began with another initial model, so learning it again gives other scores."""


@dataclass(frozen=True, slots=True)
class Resume:
    """The offsets at which a partition continues.

    Attributes
    ----------
    start
        The offset at which learning began.
    emit_from
        The first offset without outputs; the records before it are only learned again.
    committed
        The group's committed offset; None if its metadata do not hold `start`.
    topic_id
        The topic's id; None if the broker assigns no ids.
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
    """Decide where a partition continues with a state; None if the state belongs to another log.

    The state began to learn at `start`, in the topic with this id, and has processed the records
    before `next_offset`.

    Raises
    ------
    LostHistoryError
        Records that the state needs are gone, and `lost_history` is "refuse".
    ForeignOffsetError
        Another program committed an offset after `next_offset`, and `lost_history` is "refuse".
    """
    if is_recreated(topic_id, log.topic_id):
        _report_loss(log, f"the state at offset {next_offset} is from {_DELETED_TOPIC}", settings)
        return None
    begun = log.recorded_successor  # may have taken over since the commit
    if log.recorded not in (None, start) and (begun is None or begun.start != start):
        values = (*log.tp, next_offset, start, log.recorded)
        logger.error(
            "%s/%d: the state at %d began at %d, not at %d as recorded",
            *values,
            extra=at(log.tp, next_offset),
        )
        return None
    if _is_foreign(log) and (log.committed or 0) > next_offset:
        _report_foreign(log, settings)
    processed = max(next_offset, log.committed or 0)
    if processed > log.end:
        _report_loss(
            log,
            f"records up to offset {processed} were processed but the log ends at {log.end} "
            "(was the topic recreated?)",
            settings,
        )
        return None
    if next_offset < log.first:
        loss = f"the state is at offset {next_offset} but the log begins at {log.first}"
        _report_loss(log, loss, settings)
    return Resume(start, max(processed, log.first), _with_start(log), log.topic_id)


def resume_without_state(log: PartitionLog, settings: Settings) -> Resume:
    """Decide where a partition continues without a state.

    Raises
    ------
    LostHistoryError
        Records that the model needs are gone, and `lost_history` is "refuse".
    ForeignOffsetError
        Another program committed the offset, the settings do not explain it, and `lost_history`
        is "refuse".
    OtherModelError
        The partition is to be learned again, and began with another initial model.
    """
    if log.committed is None:
        return _from_configured_start(log)
    loss = _loss(log)
    if loss is None and _is_foreign(log) and not _is_explained(log, settings):
        _report_foreign(log, settings)
        return _after_loss(log, settings)
    if loss is None:
        _check_model(log, settings)
        start = log.configured if log.recorded is None else log.recorded
        emit_from = max(start, log.committed)
        return Resume(start, emit_from, _with_start(log), log.topic_id)
    _report_loss(log, loss, settings)
    return _after_loss(log, settings)


def _check_model(log: PartitionLog, settings: Settings) -> None:
    """Raise OtherModelError if the recorded start was with another initial model."""
    model = initial_digest(settings)
    if log.recorded is not None and log.recorded_model != model:
        raise OtherModelError(
            f"{log.tp.topic}/{log.tp.partition} began with initial_model = "
            f"{short(log.recorded_model)}, now {short(model)}: restore the old file, start a new "
            "deployment with another app_id, or learn the log again with the new one by "
            "`faust-oslrau inspect --forget`"
        )


def _with_start(log: PartitionLog) -> int | None:
    """Return the committed offset; None if its metadata do not hold where learning began."""
    return None if log.recorded is None else log.committed


def _report_loss(log: PartitionLog, loss: str, settings: Settings) -> None:
    """Raise LostHistoryError, or log the loss if `lost_history` is "continue"."""
    message = f"lost history of {log.tp.topic}/{log.tp.partition}: {loss}"
    if settings.lost_history == "refuse":
        raise LostHistoryError(
            f'{message}; set lost_history = "continue" to continue without it, '
            "or start a new deployment with another app_id"
        )
    logger.error(
        '%s; continuing without it, as lost_history = "continue"', message, extra=at(log.tp)
    )


def _report_foreign(log: PartitionLog, settings: Settings) -> None:
    """Raise ForeignOffsetError, or log the offset if `lost_history` is "continue"."""
    message = (
        f"another program committed offset {log.committed} of {log.tp.topic}/{log.tp.partition} "
        f"in the group {settings.app_id}"
    )
    if settings.lost_history == "refuse":
        raise ForeignOffsetError(
            f"{message}, and earlier records would get no scores: start a new deployment with "
            "another app_id, set the offset with `faust-oslrau inspect --reset`, "
            'or accept it with lost_history = "continue"'
        )
    logger.error(
        '%s; it is accepted, as lost_history = "continue"',
        message,
        extra=at(log.tp, log.committed),
    )


def _is_foreign(log: PartitionLog) -> bool:
    """Tell whether another program committed: a worker's commit records the start of learning."""
    return log.committed is not None and log.recorded is None


def _loss(log: PartitionLog) -> str | None:
    """Return why the model cannot be learned again from its start; None if it can."""
    if is_recreated(log.recorded_topic, log.topic_id):
        return f"offset {log.committed} is committed in {_DELETED_TOPIC}"
    if log.committed is not None and log.committed > log.end:
        return (
            f"offset {log.committed} is committed but the log ends at {log.end} "
            "(was the topic recreated?)"
        )
    if log.recorded is not None and log.first > log.recorded:
        return f"learning began at offset {log.recorded} but the log now begins at {log.first}"
    return None


def _is_explained(log: PartitionLog, settings: Settings) -> bool:
    """Tell whether a new deployment would begin at or after a foreign offset in any case."""
    is_fixed = settings.start != "latest" and (log.first == 0 or log.configured > log.first)
    return is_fixed and (log.committed or 0) <= log.configured


def _after_loss(log: PartitionLog, settings: Settings) -> Resume:
    committed = log.committed or 0
    if committed > log.end or is_recreated(log.recorded_topic, log.topic_id):
        return _from_configured_start(log)
    start = committed if settings.start == "latest" else log.configured
    start = max(start, log.first)
    return Resume(start, max(start, committed), topic_id=log.topic_id)


def _from_configured_start(log: PartitionLog) -> Resume:
    return Resume(log.configured, log.configured, topic_id=log.topic_id)
