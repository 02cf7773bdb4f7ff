"""Messages leave in batches, to the partition number of their source, until they are acknowledged.

The producer is idempotent: it writes a batch once however often it must send it, as long as it
lives. Brokers that are away are waited for; no message is ever given up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from faust_oslrau.app.logs import at
from faust_oslrau.topics import OutMessage, message_bytes, without_largest

from .connection import BATCH_BYTES, Connection

logger = logging.getLogger(__name__)

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0


class Emitter:
    """Sends messages to Kafka, which it reaches by aiokafka's `client_arguments`."""

    def __init__(self, client_arguments: Mapping[str, Any]) -> None:
        self._arguments = dict(client_arguments)
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()

    async def start(self) -> None:
        """Connect."""
        await self._connected()

    async def stop(self) -> None:
        """Close the connection; messages that are not acknowledged may or may not arrive."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def send(self, topic: str, partition: int, messages: Sequence[OutMessage]) -> None:
        """Send messages in order, and return when the broker has acknowledged them all."""
        done = 0
        while done < len(messages):
            done += await self._send_some(topic, partition, messages[done:])

    async def _send_some(self, topic: str, partition: int, messages: Sequence[OutMessage]) -> int:
        """Send as many of the messages as one batch takes, until it is acknowledged."""
        wait = _FIRST_WAIT
        while True:
            connection = await self._connected()
            batch, count = connection.fill(messages)
            try:
                await connection.deliver(batch, topic, partition)
                return count
            except MessageSizeTooLargeError:
                messages = _smaller(topic, messages, count)
            except KafkaError as error:
                place = f"{topic}/{partition}"
                said = "%s takes no messages, next try in %.1f s: %r"
                logger.warning(said, place, wait, error, extra=at((topic, partition)))
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
            # The producer has numbered the failed batch: the broker would take no later one.
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
        wait = _FIRST_WAIT
        while True:
            producer = AIOKafkaProducer(
                **self._arguments, enable_idempotence=True, max_batch_size=BATCH_BYTES
            )
            connection = Connection(producer)
            try:
                await producer.start()
                return connection
            except KafkaError as error:
                await connection.close()
                logger.warning("no broker, next try in %.1f s: %r", wait, error)
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)


def _smaller(topic: str, messages: Sequence[OutMessage], tried: int) -> Sequence[OutMessage]:
    """Return fewer messages, or the one message without its largest part."""
    return messages[: tried // 2] if tried > 1 else [smaller(topic, messages[0])]


def smaller(topic: str, message: OutMessage) -> OutMessage:
    """Return what is left of a message that a topic does not take, and say so."""
    size = message_bytes(message.key, message.value, message.headers)
    logger.error(
        "topic %s takes no message of %d bytes: offset %d goes without its largest part; "
        "a larger max.message.bytes of the topic would keep it",
        *(topic, size, message.offset),
    )
    return without_largest(message)
