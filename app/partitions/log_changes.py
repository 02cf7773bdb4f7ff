"""Detects changes of a log while it is read: recreated, records deleted unread, its end lost."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from aiokafka.errors import KafkaError
from faust.types import TP

from faust_oslrau.app.kafka.batches import RecordBatch
from faust_oslrau.app.kafka.topic_ids import is_recreated
from faust_oslrau.app.kafka.transport import Consumer

from .held_partition import HeldPartition, OutOfPlaceError

logger = logging.getLogger(__name__)


async def find_recreated(
    consumer: Consumer, held: Mapping[TP, HeldPartition]
) -> list[HeldPartition]:
    """Return the partitions whose topic was deleted and recreated since they were opened."""
    try:
        ids = await consumer.topic_ids({tp.topic for tp in held})
    except KafkaError as error:
        logger.debug("could not read the topic ids: %r", error)
        return []
    return [each for tp, each in held.items() if is_recreated(each.topic_id, ids.get(tp.topic))]


async def change_before(
    consumer: Consumer, partition: HeldPartition, batch: RecordBatch
) -> str | None:
    """Return how the log has changed that gave this batch; None if it goes on as it was.

    Raises
    ------
    OutOfPlaceError
        The batch must be read again: no broker answers, or another one has a longer log.
    """
    first = batch.records[0].offset
    if first < batch.position:  # which was beyond the log's end, so that it was read anew
        if await _answer(consumer.end_offsets, partition.tp) < partition.next_offset:
            return "its log ends before the next offset"
        raise OutOfPlaceError
    if first <= partition.next_offset:
        return None
    is_behind = await _answer(consumer.first_offsets, partition.tp) > partition.next_offset
    return "the next records were deleted from its log" if is_behind else None


async def _answer(ask: Callable[[list[TP]], Awaitable[dict[TP, int]]], tp: TP) -> int:
    try:
        return (await ask([tp]))[tp]
    except KafkaError as error:
        raise OutOfPlaceError from error
