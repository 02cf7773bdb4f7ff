"""How outputs and offsets leave: at least once, or exactly once to readers of what is committed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from aiokafka import OffsetAndMetadata, TopicPartition
from aiokafka.errors import KafkaError
from faust.types import TP

from faust_oslrau.app.kafka.emitter import Emitter, without_content
from faust_oslrau.app.kafka.positions import recorded_start
from faust_oslrau.app.kafka.transactions import Producers, TooLargeError, Transaction
from faust_oslrau.app.kafka.transport import Consumer
from faust_oslrau.app.logs import at
from faust_oslrau.app.pipeline import ProcessedBlock
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import OutMessage

logger = logging.getLogger(__name__)

# A commit that takes longer is tried again later; work and rebalances go on meanwhile.
_COMMIT_SECONDS = 5.0
_RETRY_SECONDS = 0.5


class Delivery(Protocol):
    """Sends what records led to, and commits the offset up to which that is done."""

    async def send(self, tp: TP, block: ProcessedBlock, position: OffsetAndMetadata) -> None:
        """Return when the broker has acknowledged the outputs of records before this position.

        Raises
        ------
        LostPartitionError
            Another worker has taken the partition.
        """

    async def record(self, offsets: Mapping[TP, OffsetAndMetadata]) -> None:
        """Commit where learning begins, before anything is sent; raises KafkaError."""

    async def commit(self, offsets: Mapping[TP, OffsetAndMetadata]) -> bool:
        """Commit offsets that have no commit yet; False where it has to be tried again."""


class AtLeastOnce:
    """Sends by one idempotent producer and commits now and then: a crash repeats a little."""

    def __init__(self, settings: Settings, emitter: Emitter, consumer: Consumer) -> None:
        self._settings = settings
        self._emitter = emitter
        self._consumer = consumer

    async def send(self, tp: TP, block: ProcessedBlock, position: OffsetAndMetadata) -> None:
        """Send the outputs; the offset is committed later."""
        # One after the other: most blocks have scores alone, and tasks cost more than they save.
        for topic, messages in _outputs(block, self._settings).items():
            await self._emitter.send(topic, tp.partition, messages)

    async def record(self, offsets: Mapping[TP, OffsetAndMetadata]) -> None:
        """Commit where learning begins."""
        if not await self.commit(offsets):
            raise KafkaError("where learning begins could not be committed")

    async def commit(self, offsets: Mapping[TP, OffsetAndMetadata]) -> bool:
        """Commit by the consumer."""
        if not offsets:  # aiokafka refuses none
            return True
        try:
            async with asyncio.timeout(_COMMIT_SECONDS):
                await self._consumer.commit_offsets(offsets)
            return True
        except (TimeoutError, KafkaError) as error:
            logger.warning("could not commit, next try later: %r", error)
            return False


class ExactlyOnce:
    """One transaction holds the outputs and the offset of a block.

    A transaction that fails may have been committed nevertheless. So the producer is opened anew,
    which ends whatever is open, and the committed offset tells what is left to send.
    """

    def __init__(self, settings: Settings, consumer: Consumer, producers: Producers) -> None:
        self._settings = settings
        self._consumer = consumer
        self._producers = producers

    async def send(self, tp: TP, block: ProcessedBlock, position: OffsetAndMetadata) -> None:
        """Send the outputs and commit the offset, together."""
        producer = self._producers.of(tp)
        outputs = _outputs(block, self._settings)
        most: dict[str, int] = {}
        while True:
            try:
                if producer.has_failed:
                    await producer.open()
                if producer.reopened:
                    done = await self._done(tp, position)
                    outputs = _from(done, outputs)
                    producer.reopened = False
                    if done >= position.offset:
                        return
                async with producer.transaction() as transaction:
                    for topic, messages in outputs.items():
                        await transaction.send(topic, tp.partition, messages, most.get(topic))
                    await self._commit(transaction, tp, position)
                return
            except TooLargeError as error:
                _make_smaller(error, outputs, most)
            except KafkaError as error:
                logger.warning(
                    "%s/%d: transaction failed, next try soon: %r", *tp, error, extra=at(tp)
                )
                await asyncio.sleep(_RETRY_SECONDS)

    async def record(self, offsets: Mapping[TP, OffsetAndMetadata]) -> None:
        """Commit where learning begins."""
        for tp, position in offsets.items():
            async with self._producers.of(tp).transaction() as transaction:
                await self._commit(transaction, tp, position)

    async def commit(self, offsets: Mapping[TP, OffsetAndMetadata]) -> bool:
        """Do nothing: all is committed with the outputs."""
        return True

    async def _done(self, tp: TP, position: OffsetAndMetadata) -> int:
        """Return the offset up to which outputs are committed."""
        found = await self._consumer.committed([tp])
        return found[tp].offset if tp in found else recorded_start(position.metadata) or 0

    async def _commit(self, transaction: Transaction, tp: TP, position: OffsetAndMetadata) -> None:
        place = {TopicPartition(*tp): position}
        await transaction.commit_offsets(place, self._settings.app_id)


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


def _from(offset: int, outputs: dict[str, list[OutMessage]]) -> dict[str, list[OutMessage]]:
    return {
        topic: [message for message in messages if message.offset >= offset]
        for topic, messages in outputs.items()
    }


def _make_smaller(
    error: TooLargeError, outputs: dict[str, list[OutMessage]], most: dict[str, int]
) -> None:
    """Send a topic less at a time, or the one message without its content."""
    if error.count > 1:
        most[error.topic] = error.count // 2
        return
    messages = outputs[error.topic]
    messages[error.first] = without_content(error.topic, messages[error.first])
