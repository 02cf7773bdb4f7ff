"""Delivery of outputs and offsets: at least once, or exactly once for read_committed consumers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from aiokafka import OffsetAndMetadata, TopicPartition
from aiokafka.errors import KafkaError
from faust.types import TP

from faust_oslrau.app.kafka.connection import BATCH_BYTES
from faust_oslrau.app.kafka.emitter import Emitter, shorten
from faust_oslrau.app.kafka.positions import recorded_start
from faust_oslrau.app.kafka.rights import reason
from faust_oslrau.app.kafka.transactions import Producers, TooLargeError, Transaction
from faust_oslrau.app.kafka.transport import Consumer
from faust_oslrau.app.logs import at
from faust_oslrau.app.pipeline import ProcessedBlock
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import OutMessage

logger = logging.getLogger(__name__)

# A commit that takes longer is retried later, so that it delays neither records nor rebalances.
_COMMIT_SECONDS = 5.0
_RETRY_SECONDS = 0.5


class Delivery(Protocol):
    """Sends outputs, and commits the offsets of the source records."""

    async def send(self, tp: TP, block: ProcessedBlock, position: OffsetAndMetadata) -> None:
        """Send a block's outputs, and return when the broker has acknowledged them.

        `position` is the offset to commit: that after the block's last record.

        Raises
        ------
        LostPartitionError
            Another worker owns the partition.
        """

    async def record(self, offsets: Mapping[TP, OffsetAndMetadata]) -> None:
        """Commit where learning begins, before anything is sent; raises KafkaError."""

    async def commit(self, offsets: Mapping[TP, OffsetAndMetadata]) -> bool:
        """Commit the offsets that `send` did not; False if the commit must be retried."""


class AtLeastOnce:
    """Sends by one idempotent producer, and commits periodically.

    After a crash the outputs since the last commit are sent again.
    """

    def __init__(self, settings: Settings, emitter: Emitter, consumer: Consumer) -> None:
        self._settings = settings
        self._emitter = emitter
        self._consumer = consumer

    async def send(self, tp: TP, block: ProcessedBlock, position: OffsetAndMetadata) -> None:
        """Send the outputs; the offset is committed later."""
        # One topic after the other: most blocks have only scores, and tasks would cost more time.
        for topic, messages in _outputs(block, self._settings).items():
            await self._emitter.send(topic, tp.partition, messages)

    async def record(self, offsets: Mapping[TP, OffsetAndMetadata]) -> None:
        """Commit where learning begins."""
        if not await self.commit(offsets):
            raise KafkaError("where learning begins could not be committed")

    async def commit(self, offsets: Mapping[TP, OffsetAndMetadata]) -> bool:
        """Commit by the consumer."""
        if not offsets:  # aiokafka rejects an empty mapping
            return True
        try:
            async with asyncio.timeout(_COMMIT_SECONDS):
                await self._consumer.commit_offsets(offsets)
            return True
        except (TimeoutError, KafkaError) as error:
            logger.warning("could not commit, will retry: %s", reason(error))
            return False


class ExactlyOnce:
    """Sends the outputs and commits the offset of a block in one transaction.

    A transaction that seems to fail may be committed. So the producer is reopened, which completes
    or aborts the transaction, and the committed offset tells which outputs to send again.
    """

    def __init__(self, settings: Settings, consumer: Consumer, producers: Producers) -> None:
        self._settings = settings
        self._consumer = consumer
        self._producers = producers
        self._limits: dict[str, int] = {}  # bytes of a batch, of topics that refused larger ones

    async def send(self, tp: TP, block: ProcessedBlock, position: OffsetAndMetadata) -> None:
        """Send the outputs and commit the offset in one transaction."""
        producer = self._producers.of(tp)
        outputs = _outputs(block, self._settings)
        while True:
            try:
                if producer.has_failed:
                    await producer.open()
                if producer.reopened:
                    committed = await self._committed(tp, position)
                    outputs = _from_offset(committed, outputs)
                    producer.reopened = False
                    if committed >= position.offset:
                        return
                async with producer.transaction() as transaction:
                    for topic, messages in outputs.items():
                        limit = self._limits.get(topic, BATCH_BYTES)
                        await transaction.send(topic, tp.partition, messages, limit)
                    await self._commit(transaction, tp, position)
                return
            except TooLargeError as error:
                self._reduce(error, outputs)
            except KafkaError as error:
                told = (*tp, reason(error, "Write"))
                logger.warning("%s/%d: transaction failed, retrying: %s", *told, extra=at(tp))
                await asyncio.sleep(_RETRY_SECONDS)

    async def record(self, offsets: Mapping[TP, OffsetAndMetadata]) -> None:
        """Commit where learning begins."""
        for tp, position in offsets.items():
            async with self._producers.of(tp).transaction() as transaction:
                await self._commit(transaction, tp, position)

    async def commit(self, offsets: Mapping[TP, OffsetAndMetadata]) -> bool:
        """Do nothing: offsets are committed with the outputs."""
        return True

    def _reduce(self, error: TooLargeError, outputs: dict[str, list[OutMessage]]) -> None:
        """Halve the size of the topic's batches, or shorten a single message."""
        topic = error.topic
        if error.count > 1:
            self._limits[topic] = error.limit // 2
        else:
            outputs[topic][error.first] = shorten(topic, outputs[topic][error.first])

    async def _committed(self, tp: TP, position: OffsetAndMetadata) -> int:
        """Return the committed offset; without one, where learning begins."""
        committed = await self._consumer.committed([tp])
        return committed[tp].offset if tp in committed else recorded_start(position) or 0

    async def _commit(self, transaction: Transaction, tp: TP, position: OffsetAndMetadata) -> None:
        offsets = {TopicPartition(*tp): position}
        await transaction.commit_offsets(offsets, self._settings.app_id)


def delivery(
    settings: Settings, emitter: Emitter, consumer: Consumer, producers: Producers
) -> Delivery:
    """Return the delivery that the settings choose."""
    if settings.delivery == "exactly_once":
        return ExactlyOnce(settings, consumer, producers)
    return AtLeastOnce(settings, emitter, consumer)


def _outputs(block: ProcessedBlock, topics: Settings) -> dict[str, list[OutMessage]]:
    return {
        topics.scores_topic: block.scores,
        topics.anomalies_topic: block.alerts,
        topics.dead_letter_topic: block.dead_letters,
    }


def _from_offset(offset: int, outputs: dict[str, list[OutMessage]]) -> dict[str, list[OutMessage]]:
    """Return the outputs of the records from this offset on."""
    return {
        topic: [message for message in messages if message.offset >= offset]
        for topic, messages in outputs.items()
    }
