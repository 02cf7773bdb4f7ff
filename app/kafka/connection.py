"""A producer whose batches are waited for, but not for ever where it has ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerClosed
from aiokafka.producer.message_accumulator import BatchBuilder

from faust_oslrau.topics import OutMessage

logger = logging.getLogger(__name__)

BATCH_BYTES = 512 * 1024
"""Any topic takes this much; a single larger message goes in a batch of its own."""

_PATIENCE_SECONDS = 10.0
# How long a producer that is done for may take to close its connections.
_CLOSE_SECONDS = 2.0


class Connection:
    """A producer, and who waits for it to deliver."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self.producer = producer
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fill(self, messages: Sequence[OutMessage]) -> tuple[BatchBuilder, int]:
        """Return a batch of the first messages, and how many it took."""
        batch, count = self.producer.create_batch(), 0
        append = batch._builder.append  # the batch's own takes as long again
        none: list[tuple[str, bytes]] = []
        for _, key, value, timestamp, headers in messages:
            if append(count, timestamp, key, value, [*headers] if headers else none) is None:
                break
            count += 1
        batch._relative_offset = count
        return batch, count

    async def deliver(self, batch: BatchBuilder, topic: str, partition: int) -> int:
        """Send a batch and return its first offset when it is acknowledged.

        Raises
        ------
        KafkaError
            It is not, or nobody knows: the producer will take no further batch.
        """
        sending = asyncio.create_task(self._send(batch, topic, partition))
        try:
            await self._wait_for(sending, f"{topic}/{partition}")
            if not sending.done():  # a producer that was closed may leave it so for ever
                raise ProducerClosed
            return sending.result()
        finally:
            sending.cancel()

    async def _send(self, batch: BatchBuilder, topic: str, partition: int) -> int:
        if partition not in await self.producer.partitions_for(topic):
            raise KafkaError(f"topic {topic} has no partition {partition}")
        sent = await (await self.producer.send_batch(batch, topic, partition=partition))
        return int(sent.offset)

    async def _wait_for(self, sending: asyncio.Task[Any], place: str) -> None:
        """Wait until the task or the producer is done, and say when it takes long."""
        seconds = 0.0
        while True:
            done, _ = await asyncio.wait(
                {sending, self._closed},
                timeout=_PATIENCE_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if done:
                return
            seconds += _PATIENCE_SECONDS
            logger.warning("%s has not answered for %.0f s, waiting", place, seconds)

    async def close(self) -> None:
        """Send what waits, for a short while, and release everyone."""
        await end_within(_CLOSE_SECONDS, self.producer.stop())
        if not self._closed.done():
            self._closed.set_result(None)


async def end_within(seconds: float, call: Coroutine[Any, Any, None]) -> None:
    """Run a call for at most so long; how it ends makes no difference any more."""
    task = asyncio.create_task(call)
    # Not `wait_for`: it would wait for a producer that hangs on its way out.
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if done:
        ended = await asyncio.gather(task, return_exceptions=True)
        logger.debug("ended with %r", ended[0])
    task.cancel()
