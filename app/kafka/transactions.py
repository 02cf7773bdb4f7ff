"""One transactional producer for each partition that a worker holds.

Its id is the deployment's and the partition's, so that the broker lets only the worker that opened
it last write, and ends what those before it left open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidProducerEpoch,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
)

from faust_oslrau.topics import OutMessage

from .connection import BATCH_BYTES, Connection, end_within

if TYPE_CHECKING:
    from faust.types import TP

logger = logging.getLogger(__name__)

# Enough for a slow broker; a worker that is gone for longer has lost its partitions anyway.
_TIMEOUT_MILLISECONDS = 60_000
_ABORT_SECONDS = 2.0


class LostPartitionError(Exception):
    """Another worker has taken the partition: whatever this one still does there is void."""


class TooLargeError(Exception):
    """A topic does not take the `count` messages of a batch from number `first` on."""

    def __init__(self, topic: str, first: int, count: int) -> None:
        super().__init__(f"topic {topic} takes no batch of {count} messages")
        self.topic = topic
        self.first = first
        self.count = count


class Transaction:
    """What is written between two ends of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(
        self, topic: str, partition: int, messages: Sequence[OutMessage], most: int | None = None
    ) -> list[int]:
        """Write messages in order and return their offsets when all are acknowledged.

        At most `most` of them go in one batch.

        Raises
        ------
        TooLargeError
            The topic does not take a batch.
        """
        offsets: list[int] = []
        while len(offsets) < len(messages):
            done = len(offsets)
            end = len(messages) if most is None else done + most
            batch, count = self._connection.fill(messages[done:end])
            try:
                first = await self._connection.deliver(batch, topic, partition)
            except MessageSizeTooLargeError as error:
                raise TooLargeError(topic, done, count) from error
            offsets += range(first, first + count)
        return offsets

    async def commit_offsets(self, offsets: Mapping[TP, Any], group: str) -> None:
        """Have the group's offsets committed with the rest."""
        await self._connection.producer.send_offsets_to_transaction(offsets, group)


class TransactionalProducer:
    """Writes transactions, one after the other.

    Attributes
    ----------
    has_failed
        Whether the last transaction failed, so that it has to be opened anew.
    reopened
        Whether it was opened anew: another worker may have had the partition in between. Whoever
        looks clears it.
    """

    def __init__(self, transactional_id: str, client_arguments: Mapping[str, Any]) -> None:
        self._id = transactional_id
        self._arguments = client_arguments
        self.has_failed = False
        self.reopened = False
        self._connection: Connection | None = None
        self._closed = False
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Connect, which ends all other producers with this id and what they left open.

        Raises
        ------
        KafkaError
            No broker answers, or it refuses.
        """
        producer = AIOKafkaProducer(
            **self._arguments,
            transactional_id=self._id,
            transaction_timeout_ms=_TIMEOUT_MILLISECONDS,
            max_batch_size=BATCH_BYTES,
        )
        connection = Connection(producer)
        try:
            await producer.start()
        except BaseException:
            await connection.close()
            raise
        self.reopened, self.has_failed = self.has_failed, False
        await self._keep(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Write everything or nothing.

        Raises
        ------
        LostPartitionError
            Another producer with this id has been opened.
        KafkaError
            It failed, or nobody knows whether it was committed, or an earlier one failed.
        """
        async with self._lock:
            connection = self._taken()
            try:
                await connection.producer.begin_transaction()
                yield Transaction(connection)
                await connection.producer.commit_transaction()
            except (ProducerFenced, InvalidProducerEpoch) as error:
                _take_note(connection.producer)
                await connection.close()
                raise LostPartitionError(f"{self._id} has been opened elsewhere") from error
            except BaseException:
                self.has_failed = True
                await _abort(connection)
                raise
            await self._keep(connection)

    async def close(self) -> None:
        """Disconnect, or have a transaction that is under way do so at its end."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _taken(self) -> Connection:
        """Return the connection, which is nobody else's until it is kept again."""
        connection, self._connection = self._connection, None
        if self._closed:
            raise LostPartitionError(f"{self._id} has been closed")
        if connection is None:
            raise KafkaError(f"{self._id} is not open")
        return connection

    async def _keep(self, connection: Connection) -> None:
        if self._closed:
            await connection.close()
        else:
            self._connection = connection


class Producers:
    """The transactional producers of a worker's partitions."""

    def __init__(self, app_id: str, client_arguments: Mapping[str, Any]) -> None:
        self._app_id = app_id
        self._arguments = client_arguments
        self._producers: dict[TP, TransactionalProducer] = {}

    async def open(self, tp: TP) -> None:
        """Take a partition over from whoever had it; raises as `TransactionalProducer.open`."""
        await self._close(tp)
        producer = TransactionalProducer(f"{self._app_id}-{tp[0]}-{tp[1]}", self._arguments)
        await producer.open()
        self._producers[tp] = producer

    def of(self, tp: TP) -> TransactionalProducer:
        """Return the producer of a partition that was opened.

        Raises
        ------
        LostPartitionError
            It is not open any more.
        """
        if tp not in self._producers:
            raise LostPartitionError("it has been revoked")
        return self._producers[tp]

    async def close(self) -> None:
        """Disconnect all."""
        await asyncio.gather(*map(self._close, list(self._producers)))

    async def _close(self, tp: TP) -> None:
        producer = self._producers.pop(tp, None)
        if producer is not None:
            await producer.close()


def _take_note(fenced: AIOKafkaProducer) -> None:
    """Look at the failure that aiokafka keeps, which asyncio would log as never looked at."""
    transaction = fenced._txn_manager.wait_for_transaction_end()
    if transaction.done():
        transaction.exception()


async def _abort(connection: Connection) -> None:
    """End what failed, as far as the broker answers; the next one to open the id does the rest."""
    await end_within(_ABORT_SECONDS, connection.producer.abort_transaction())
    await connection.close()
