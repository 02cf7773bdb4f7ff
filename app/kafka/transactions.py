"""Transactional producers, one for each partition that a worker holds.

The transactional id names the deployment and the partition, as app_id/topic/partition. A slash
occurs in neither name, so no two partitions share an id. Opening a producer fences that of the
partition's former owner, and aborts its open transaction.
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
    TransactionalIdAuthorizationFailed,
)

from faust_oslrau.topics import OutMessage

from .connection import AS_THEY_ARE, BATCH_BYTES, Connection, Writers, end_within, retrieve_failures
from .rights import reason

if TYPE_CHECKING:
    from faust.types import TP

logger = logging.getLogger(__name__)

# Enough for a slow broker. A worker that is silent for longer has lost its partitions anyway.
_TIMEOUT_MILLISECONDS = 60_000
_ABORT_SECONDS = 2.0


class LostPartitionError(Exception):
    """Another worker owns the partition: the broker rejects this worker's writes."""


class TooLargeError(Exception):
    """A batch of `count` messages, from message `first` on, is too large for its topic.

    It had at most `limit` bytes, or a single message.
    """

    def __init__(self, topic: str, first: int, count: int, limit: int) -> None:
        super().__init__(f"topic {topic} takes no batch of {count} messages")
        self.topic = topic
        self.first = first
        self.count = count
        self.limit = limit


class Transaction:
    """An open transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(
        self, topic: str, partition: int, messages: Sequence[OutMessage], limit: int = BATCH_BYTES
    ) -> list[int]:
        """Write messages in order, wait for all acknowledgements, and return their offsets.

        A batch has at most `limit` bytes, unless a message has more.

        Raises
        ------
        TooLargeError
            A batch is too large for the topic.
        """
        offsets: list[int] = []
        while len(offsets) < len(messages):
            sent = len(offsets)
            batch, count = self._connection.fill(topic, messages[sent:], limit)
            try:
                first = await self._connection.deliver(batch, topic, partition)
            except MessageSizeTooLargeError as error:
                raise TooLargeError(topic, sent, count, limit) from error
            offsets += range(first, first + count)
        return offsets

    async def commit_offsets(self, offsets: Mapping[TP, Any], group: str) -> None:
        """Commit the group's offsets with the transaction."""
        await self._connection.producer.send_offsets_to_transaction(offsets, group)


class Opening:
    """One opening of a producer; until the next one, nobody else has written with its id."""


class TransactionalProducer:
    """Writes transactions, one after the other.

    Attributes
    ----------
    has_failed
        Whether the last transaction failed, so that the producer must be reopened.
    reopened
        Whether it was reopened after a failure: the transaction may be committed, or another worker
        may have owned the partition in between. The caller that checks this resets it.
    opening
        The last opening.
    """

    def __init__(
        self,
        transactional_id: str,
        client_arguments: Mapping[str, Any],
        writers: Writers = AS_THEY_ARE,
    ) -> None:
        self._id = transactional_id
        self._arguments = client_arguments
        self._writers = writers
        self.has_failed = False
        self.reopened = False
        self.opening = Opening()
        self._connection: Connection | None = None
        self._closed = False
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Connect, which fences all other producers with this id and aborts their transactions.

        Another caller may have done so after the same failure, and must not be fenced.

        Raises
        ------
        KafkaError
            No broker answers, or it refuses the producer.
        """
        async with self._lock:
            if self._connection is None and not self._closed:
                await self._connect()

    async def _connect(self) -> None:
        producer = AIOKafkaProducer(
            **self._arguments,
            transactional_id=self._id,
            transaction_timeout_ms=_TIMEOUT_MILLISECONDS,
            max_batch_size=BATCH_BYTES,
        )
        connection = Connection(producer, self._writers)
        await connection.start()
        self.reopened, self.has_failed = self.has_failed, False
        self.opening = Opening()
        await self._put_back(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Open a transaction; commit it at the end of the context, or abort it after an error.

        Raises
        ------
        LostPartitionError
            Another producer with this id was opened, which fences this one.
        KafkaError
            The transaction failed, or may be committed or not, or an earlier one failed.
        """
        async with self._lock:
            connection = self._take()
            try:
                await connection.producer.begin_transaction()
                yield Transaction(connection)
                await connection.producer.commit_transaction()
            except (ProducerFenced, InvalidProducerEpoch) as error:
                self._closed = True  # those that wait for their turn have lost it, too
                await connection.close()
                raise LostPartitionError(f"{self._id} has been opened elsewhere") from error
            except BaseException:
                self.has_failed = True
                await _abort(connection)
                raise
            await self._put_back(connection)

    async def close(self) -> None:
        """Disconnect; an open transaction disconnects at its end."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _take(self) -> Connection:
        """Take the connection for a transaction; `_put_back` makes it available again."""
        connection, self._connection = self._connection, None
        if self._closed:
            raise LostPartitionError(f"{self._id} has been closed")
        if connection is None:
            raise KafkaError(f"{self._id} is not open")
        return connection

    async def _put_back(self, connection: Connection) -> None:
        if self._closed:
            await connection.close()
        else:
            self._connection = connection


class Producers:
    """The transactional producers of a worker's partitions."""

    def __init__(
        self, app_id: str, client_arguments: Mapping[str, Any], writers: Writers = AS_THEY_ARE
    ) -> None:
        self._app_id = app_id
        self._arguments = client_arguments
        self._writers = writers
        self._producers: dict[TP, TransactionalProducer] = {}

    async def open(self, tp: TP) -> None:
        """Open a partition's producer, which fences its former owner's.

        Raises as `TransactionalProducer.open`.
        """
        await self._close(tp)
        name = f"{self._app_id}/{tp[0]}/{tp[1]}"
        producer = TransactionalProducer(name, self._arguments, self._writers)
        await producer.open()
        self._producers[tp] = producer

    async def fence_earlier_version(self, tp: TP) -> None:
        """Fence the producer that a worker of an earlier version may have opened.

        Its id was app_id-topic-partition. If this worker may not use that id, it is passed over.
        """
        producer = TransactionalProducer(f"{self._app_id}-{tp[0]}-{tp[1]}", self._arguments)
        try:
            await producer.open()
        except TransactionalIdAuthorizationFailed as error:
            logger.info("%s/%d: an earlier version is not fenced, %s", *tp, reason(error))
        finally:
            await producer.close()

    def of(self, tp: TP) -> TransactionalProducer:
        """Return the producer of an open partition.

        Raises
        ------
        LostPartitionError
            The partition was revoked.
        """
        if tp not in self._producers:
            raise LostPartitionError("it has been revoked")
        return self._producers[tp]

    async def close(self) -> None:
        """Disconnect all producers."""
        await asyncio.gather(*map(self._close, list(self._producers)))

    async def _close(self, tp: TP) -> None:
        producer = self._producers.pop(tp, None)
        if producer is not None:
            await producer.close()


async def _abort(connection: Connection) -> None:
    """Abort a failed transaction; without a broker the next producer with this id aborts it."""
    retrieve_failures(connection.producer)  # aborting begins with new futures
    await end_within(_ABORT_SECONDS, connection.producer.abort_transaction())
    await connection.close()
