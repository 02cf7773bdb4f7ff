"""Detects changes of a log while it is read: a recreated topic, records deleted unread."""

from __future__ import annotations

import logging
from collections.abc import Mapping

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


async def is_behind_log_start(
    consumer: Consumer, partition: HeldPartition, batch: RecordBatch
) -> bool:
    """Tell whether the next records were deleted: the log now starts after the next offset.

    Raises
    ------
    OutOfPlaceError
        No broker answers: the batch must be read again.
    """
    if batch.records[0].offset <= partition.next_offset:
        return False
    try:
        first = await consumer.first_offsets([partition.tp])
    except KafkaError as error:
        raise OutOfPlaceError from error
    return first[partition.tp] > partition.next_offset
