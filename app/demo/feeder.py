"""Sends messages at a steady rate, and pauses while too many are unanswered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from faust_oslrau.app.errors import BrokerError, TopicError
from faust_oslrau.app.settings import Settings

from .accounting import Account
from .feed import Message

# How often messages are sent, and how much delay is caught up at once.
_TICK_SECONDS = 0.05
_CATCH_UP_SECONDS = 0.25
# The embedded broker drops the oldest messages of a partition beyond 5 MiB, even unread ones. So
# the unanswered messages are limited; an answer is a few hundred bytes larger than its record.
_UNANSWERED_BYTES = 3 * 2**20
_ANSWER_BYTES = 512
# Sent before the next look at how many are unanswered.
_MOST_AT_ONCE = 2**20


class Feeder:
    """Sends the messages of a feed to the source topic.

    Attributes
    ----------
    is_paused
        Whether the feeder waits for answers before it sends more.
    """

    def __init__(
        self,
        producer: AIOKafkaProducer,
        settings: Settings,
        account: Account,
        partitions: int,
    ) -> None:
        self.is_paused = False
        self._producer = producer
        self._topic = settings.source_topics[0]
        self._account = account
        self._partitions = partitions
        self._max_bytes = settings.max_message_bytes
        self._largest = 0

    async def run(self, feed: Iterator[Message], rate: float, stop: asyncio.Event) -> None:
        """Send the feed, `rate` messages a second, until it ends or `stop` is set.

        Raises
        ------
        BrokerError
            The broker is unavailable or refuses the client.
        TopicError
            A message is too large for the topic.
        """
        credit, last = 0.0, monotonic()
        while not stop.is_set():
            await asyncio.sleep(_TICK_SECONDS)
            now = monotonic()
            credit = min(credit + rate * (now - last), max(1.0, rate * _CATCH_UP_SECONDS))
            last = now
            self.is_paused = self._must_pause()
            if self.is_paused or credit < 1:
                continue
            messages = list(_first(islice(feed, int(credit)), _MOST_AT_ONCE))
            if not messages:
                return
            credit -= len(messages)
            await self._send(messages)

    def _must_pause(self) -> bool:
        most = max(map(self._account.waiting_in, range(self._partitions)))
        return most * (self._largest + _ANSWER_BYTES) > _UNANSWERED_BYTES

    async def _send(self, messages: Sequence[Message]) -> None:
        of_partition: dict[int, list[Message]] = {}
        for message in messages:
            self._check_size(message)
            of_partition.setdefault(message.partition, []).append(message)
        sends = (self._send_to(partition, of) for partition, of in of_partition.items())
        try:
            await asyncio.gather(*sends)
        except KafkaError as error:
            raise BrokerError(f"topic {self._topic}: {error!r}") from error

    def _check_size(self, message: Message) -> None:
        size = len(message.value or b"")
        if size > self._max_bytes:
            raise TopicError(
                f"topic {self._topic}: a message of {size} bytes is larger than it accepts"
            )
        self._largest = max(self._largest, size)

    async def _send_to(self, partition: int, messages: Sequence[Message]) -> None:
        sent = 0
        while sent < len(messages):
            batch = self._producer.create_batch()
            first = sent
            while sent < len(messages) and (
                batch.append(timestamp=None, key=messages[sent].key, value=messages[sent].value)
                is not None
            ):
                sent += 1
            delivery = await self._producer.send_batch(batch, self._topic, partition=partition)
            written = await delivery
            labels = [message.label for message in messages[first:sent]]
            keys = [message.key for message in messages[first:sent]]
            self._account.add_sent(partition, written.offset, labels, keys)


def _first(messages: Iterable[Message], most_bytes: int) -> Iterator[Message]:
    """Yield messages, the last of which reaches so many bytes."""
    size = 0
    for message in messages:
        yield message
        size += len(message.value or b"")
        if size >= most_bytes:
            return
