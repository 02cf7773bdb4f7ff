"""A producer that acknowledges each batch, or fails it when the producer is closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerClosed
from aiokafka.producer.message_accumulator import BatchBuilder

from faust_oslrau.topics import OutMessage, message_bytes

from .no_creation import create_no_topics

logger = logging.getLogger(__name__)

Writers = Mapping[str, Callable[[bytes], bytes]]
"""What makes the values that a topic gets; other topics get those of the messages."""

AS_THEY_ARE: Writers = {}

BATCH_BYTES = 512 * 1024
"""Most topics accept batches of this size; a larger message is sent in a batch of its own."""

# How often to warn about a batch that is not acknowledged.
_WARNING_SECONDS = 10.0
# How long a closing producer may take to send waiting batches.
_CLOSE_SECONDS = 2.0


class Connection:
    """A producer, and the callers that wait for its acknowledgements."""

    def __init__(self, producer: AIOKafkaProducer, writers: Writers) -> None:
        self.producer = producer
        self._writers = writers
        create_no_topics(producer)
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        """Connect; after a failure, which is raised, the connection is closed."""
        try:
            await self.producer.start()
        except BaseException:
            await self.close()
            raise

    def fill(
        self, topic: str, messages: Sequence[OutMessage], limit: int = BATCH_BYTES
    ) -> tuple[BatchBuilder, int]:
        """Return a batch of at most `limit` bytes of the first messages, and their number."""
        if limit < BATCH_BYTES:
            messages = _first(messages, limit)
        write = self._writers.get(topic)
        batch, count = self.producer.create_batch(), 0
        append = batch._builder.append  # the public method takes twice as long
        no_headers: list[tuple[str, bytes]] = []
        for _, key, value, timestamp, headers in messages:
            if write is not None and value is not None:
                value = write(value)
            if append(count, timestamp, key, value, [*headers] if headers else no_headers) is None:
                break
            count += 1
        batch._relative_offset = count
        return batch, count

    async def deliver(self, batch: BatchBuilder, topic: str, partition: int) -> int:
        """Send a batch, wait for its acknowledgement, and return its first offset.

        Raises
        ------
        KafkaError
            The batch was not, or may not have been, written; the producer accepts no further one.
        """
        sending = asyncio.create_task(self._send(batch, topic, partition))
        try:
            await self._wait_for(sending, f"{topic}/{partition}")
            if not sending.done():  # a closed producer may never complete it
                raise ProducerClosed
            return sending.result()
        finally:
            sending.cancel()

    async def _send(self, batch: BatchBuilder, topic: str, partition: int) -> int:
        if partition not in await self.producer.partitions_for(topic):
            raise KafkaError(f"topic {topic} has no partition {partition}")
        sent = await (await self.producer.send_batch(batch, topic, partition=partition))
        return int(sent.offset)

    async def _wait_for(self, sending: asyncio.Task[Any], partition: str) -> None:
        """Wait until the batch is sent or the producer closed; warn if it takes long."""
        seconds = 0.0
        while True:
            done, _ = await asyncio.wait(
                {sending, self._closed},
                timeout=_WARNING_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if done:
                return
            seconds += _WARNING_SECONDS
            logger.warning("%s has not answered for %.0f s, waiting", partition, seconds)

    async def close(self) -> None:
        """Close the producer in bounded time, and fail the batches that are not acknowledged."""
        await end_within(_CLOSE_SECONDS, self.producer.stop())
        retrieve_failures(self.producer)
        if not self._closed.done():
            self._closed.set_result(None)


def _first(messages: Sequence[OutMessage], limit: int) -> Sequence[OutMessage]:
    """Return the first messages that together have at most `limit` bytes, at least one."""
    sizes = (message_bytes(m.key, m.value, m.headers) for m in messages)
    within = takewhile(lambda total: total <= limit, accumulate(sizes))
    return messages[: max(sum(1 for _ in within), 1)]


async def end_within(seconds: float, call: Coroutine[Any, Any, None]) -> None:
    """Run a call for at most `seconds`, and ignore its result and errors."""
    task = asyncio.create_task(call)
    # Not `wait_for`, which would wait for the cancellation of a producer that hangs.
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if done:
        ended = await asyncio.gather(task, return_exceptions=True)
        logger.debug("ended with %r", ended[0])
    task.cancel()


def retrieve_failures(producer: AIOKafkaProducer) -> None:
    """Retrieve the exceptions of aiokafka's own futures, as asyncio logs those never retrieved.

    A failed producer sets them at the end of its transaction and at batches that it never sent.
    """
    queues = producer._message_accumulator._batches.values()
    futures = [batch._drain_waiter for queue in queues for batch in queue]
    if producer._txn_manager is not None:
        futures.append(producer._txn_manager.wait_for_transaction_end())
    for future in futures:
        if future is not None and future.done() and not future.cancelled():
            future.exception()
