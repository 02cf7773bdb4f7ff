"""Reads the anomalies topic, and tells of its events, each at least once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from heapq import merge
from time import monotonic, time

import aiohttp
from aiokafka import AIOKafkaConsumer, OffsetAndMetadata, TopicPartition
from aiokafka.errors import KafkaError

from faust_oslrau.app.errors import BrokerError
from faust_oslrau.app.kafka.clients import connected, connected_admin, partition_count
from faust_oslrau.app.kafka.committed_offsets import committed_offsets
from faust_oslrau.app.kafka.rights import reason
from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.registry import MessageSchemas, RegistryError
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import KafkaRecord

from .channels import Channel, channels, read_template
from .notices import Event, Key, Notices, event_of

logger = logging.getLogger(__name__)

_POLL_MS = 500
_RETRY_SECONDS = 5.0
_REMIND_SECONDS = 60.0
_METADATA_MS = 60_000  # how soon new partitions are found
_MOST_DIGITS = 19  # of an offset


async def notify_all(settings: Settings) -> None:
    """Tell each channel of the settings until cancelled, whatever becomes of the others.

    Raises
    ------
    SettingsError
        The file of the setting `notify.template` is no template.
    BrokerError
        The broker is unavailable, or refuses to let the topic be read.
    TopicError
        There is no such topic.
    """
    template = read_template(settings.notify.template)
    async with aiohttp.ClientSession() as session:
        told = channels(settings.notify, template, session)
        await asyncio.gather(*(Notifier(settings, channel).run() for channel in told))


class Notifier:
    """Tells a channel of events, from where it stopped.

    What it commits is the first message of the oldest notice that is still open, and as metadata
    the offset before which all was told. After a restart it reads from the former, in silence up to
    the latter. Each channel has a group of its own, so that none waits for another one.
    """

    def __init__(self, settings: Settings, channel: Channel) -> None:
        self._settings = settings
        self._channel = channel
        self._group = f"{settings.app_id}-notify-{channel.name}"
        self._notices = Notices(settings)
        self._schemas = MessageSchemas(settings)
        self._began: dict[Key, tuple[TopicPartition, int]] = {}
        self._told: dict[TopicPartition, int] = {}
        self._next: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        """Tell of events until cancelled; raises as ``notify_all`` does."""
        topic = self._settings.anomalies_topic
        async with connected_admin(self._settings) as admin:
            tps = [TopicPartition(topic, p) for p in range(await partition_count(admin, topic))]
        consumer = AIOKafkaConsumer(
            **client_arguments(self._settings),
            group_id=self._group,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",  # what retention deleted is passed over
            max_partition_fetch_bytes=self._settings.max_output_bytes,
            metadata_max_age_ms=_METADATA_MS,
        )
        async with connected(consumer, self._settings), aclosing(self._schemas):
            try:
                await self._resume(consumer, tps)
                logger.info("reading %s for the %s", topic, self._channel.name)
                await self._follow(consumer)
            except KafkaError as error:
                raise BrokerError(f"topic {topic}: {reason(error)}") from error

    async def _resume(self, consumer: AIOKafkaConsumer, tps: list[TopicPartition]) -> None:
        """Read from where it stopped; for the first time, what comes from now on."""
        committed = await committed_offsets(consumer._coordinator, tps)
        ends = await consumer.end_offsets(tps)
        for tp in tps:
            new = 0 if committed else ends[tp]  # beside others with a commit, it was added later
            start, told = committed.get(tp, OffsetAndMetadata(new, ""))
            self._told[tp] = told_before(told, start, ends[tp])
            self._next[tp] = start
        self._assign(consumer)
        await self._commit(consumer)

    def _assign(self, consumer: AIOKafkaConsumer) -> None:
        consumer.assign(list(self._next))
        for tp, offset in self._next.items():
            consumer.seek(tp, offset)

    async def _follow(self, consumer: AIOKafkaConsumer) -> None:
        reminded = monotonic()
        while True:
            batches = await consumer.getmany(timeout_ms=_POLL_MS)
            # One partition after the other, what happened at once would not overlap.
            for record in merge(*batches.values(), key=lambda record: record.timestamp):
                await self._take(record)
            is_due = monotonic() - reminded >= _REMIND_SECONDS
            if batches or is_due:  # brokers forget a commit that is not renewed
                await self._commit(consumer)
            self._widen(consumer)
            if is_due:
                reminded = monotonic()
                await self._tell(self._notices.gone(1000.0 * time()), is_new=True)
                await self._channel.remind([each for each in self._notices.open if each.told])

    def _widen(self, consumer: AIOKafkaConsumer) -> None:
        """Read partitions that were added, too, from their first message."""
        topic = self._settings.anomalies_topic
        known = consumer.partitions_for_topic(topic) or ()
        added = {TopicPartition(topic, number) for number in known} - self._next.keys()
        if added:
            self._next |= dict.fromkeys(added, 0)
            self._told |= dict.fromkeys(added, 0)
            self._assign(consumer)
            logger.info("reading %s with %d partitions", topic, len(self._next))

    async def _take(self, record: KafkaRecord) -> None:
        tp = TopicPartition(record.topic, record.partition)
        self._next[tp] = record.offset + 1
        event = event_of(await self._read(record))
        if event is None:
            return
        former = self._notices.ended_by(event)
        self._began.setdefault(event.key, (tp, record.offset))
        is_new = record.offset >= self._told[tp]
        await self._tell([each for each in (former, event) if each is not None], is_new=is_new)

    async def _tell(self, events: Sequence[Event], *, is_new: bool) -> None:
        """Take events in, and tell of them if they are new."""
        found = [self._notices.add(each) for each in events]
        still_open = {key for notice in self._notices.open for key in notice.events}
        self._began = {key: at for key, at in self._began.items() if key in still_open}
        for news in found:
            if news is not None and is_new:
                await self._channel.tell(news)
                told = (self._channel.name, news.state, news.notice.title, news.notice.severity)
                logger.info("%s told, %s: %s, %s", *told)

    async def _read(self, record: KafkaRecord) -> KafkaRecord:
        """Return a message as JSON; wait for a registry that is to be asked for its schema."""
        while True:
            try:
                return await self._schemas.read(record)
            except RegistryError as error:
                logger.warning("a message is not read yet, will retry: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _commit(self, consumer: AIOKafkaConsumer) -> None:
        for tp, following in self._next.items():
            self._told[tp] = max(self._told[tp], following)
        oldest = dict(self._next)
        for tp, offset in self._began.values():
            oldest[tp] = min(oldest[tp], offset)
        offsets = {tp: OffsetAndMetadata(o, str(self._told[tp])) for tp, o in oldest.items()}
        try:
            await consumer.commit(offsets)
        except KafkaError as error:
            if not error.retriable:
                raise
            logger.warning("could not commit, will retry: %s", reason(error))


def told_before(metadata: str, start: int, end: int) -> int:
    """Return the offset that a commit's metadata tell, if it is one: nothing is left untold."""
    if not (metadata.isdecimal() and len(metadata) <= _MOST_DIGITS):
        return start
    told = int(metadata)
    return told if start <= told <= end else start
