"""Sends messages in batches until the broker acknowledges them.

The producer is idempotent: while it is open, it writes each batch once, however often it retries.
A new producer may repeat a batch. The emitter waits for an unavailable broker and drops no message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from faust_oslrau.app.logs import at
from faust_oslrau.topics import OutMessage, message_bytes
from faust_oslrau.topics.shortening import without_largest

from .connection import AS_THEY_ARE, BATCH_BYTES, Connection, Writers
from .rights import reason

logger = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS = 0.1
_MAX_WAIT_SECONDS = 5.0


class Emitter:
    """Sends messages to Kafka by an idempotent producer with these `client_arguments`."""

    def __init__(self, client_arguments: Mapping[str, Any], writers: Writers = AS_THEY_ARE) -> None:
        self._arguments = dict(client_arguments)
        self._writers = writers
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._limits: dict[str, int] = {}  # bytes of a batch, of topics that refused larger ones

    async def start(self) -> None:
        """Connect."""
        await self._connected()

    async def stop(self) -> None:
        """Close the connection; messages without an acknowledgement may or may not be written."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def send(self, topic: str, partition: int, messages: Sequence[OutMessage]) -> None:
        """Send messages in order, and return when the broker has acknowledged all of them."""
        done = 0
        while done < len(messages):
            done += await self._send_some(topic, partition, messages[done:])

    async def _send_some(self, topic: str, partition: int, messages: Sequence[OutMessage]) -> int:
        """Send one batch of the first messages until it is acknowledged; return their number."""
        wait = _FIRST_WAIT_SECONDS
        while True:
            connection = await self._connected()
            limit = self._limits.get(topic, BATCH_BYTES)
            batch, count = connection.fill(topic, messages, limit)
            try:
                await connection.deliver(batch, topic, partition)
                return count
            except MessageSizeTooLargeError:
                if count > 1:
                    self._limits[topic] = limit // 2
                else:
                    messages = [shorten(topic, messages[0])]
            except KafkaError as error:
                logger.warning(
                    "could not send to %s/%d, retrying in %.1f s: %s",
                    *(topic, partition, wait, reason(error, "Write", topic)),
                    extra=at((topic, partition)),
                )
                await asyncio.sleep(wait)
                wait = min(2 * wait, _MAX_WAIT_SECONDS)
            # The failed batch has a sequence number, so the broker would reject later batches.
            await self._drop(connection)

    async def _connected(self) -> Connection:
        async with self._connecting:
            if self._connection is None:
                self._connection = await self._connect()
            return self._connection

    async def _drop(self, connection: Connection) -> None:
        if self._connection is connection:
            self._connection = None
            await connection.close()

    async def _connect(self) -> Connection:
        wait = _FIRST_WAIT_SECONDS
        while True:
            producer = AIOKafkaProducer(
                **self._arguments, enable_idempotence=True, max_batch_size=BATCH_BYTES
            )
            connection = Connection(producer, self._writers)
            try:
                await connection.start()
                return connection
            except KafkaError as error:
                logger.warning("no broker, retrying in %.1f s: %s", wait, reason(error))
            await asyncio.sleep(wait)
            wait = min(2 * wait, _MAX_WAIT_SECONDS)


def shorten(topic: str, message: OutMessage) -> OutMessage:
    """Return a message that is too large for its topic without its largest part; log an error."""
    size = message_bytes(message.key, message.value, message.headers)
    logger.error(
        "topic %s takes no message of %d bytes: offset %d is sent without its largest part; "
        "increase max.message.bytes of the topic to keep it",
        *(topic, size, message.offset),
    )
    return without_largest(message)
