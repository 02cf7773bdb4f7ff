"""Sends the rows of a file to the partitions of a topic, in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from time import monotonic, time
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from aiokafka.producer.message_accumulator import BatchBuilder

from faust_oslrau.app.errors import BrokerError, TopicError
from faust_oslrau.app.kafka.clients import connected, connected_admin, partition_count
from faust_oslrau.app.kafka.output_limits import (
    FOREVER,
    MAX_BYTES,
    RETENTION_MS,
    Configuration,
    retention,
)
from faust_oslrau.app.kafka.rights import reason
from faust_oslrau.app.kafka.security import producer_arguments
from faust_oslrau.app.kafka.topics import create, topic_config
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import TimeReader

from .encoding import Encode, row_encoder
from .input_files import InputFile
from .input_messages import InputFileError, InputMessage
from .partitioner import partition_of
from .progress import Report

# Messages in flight: each chunk takes one round trip to the broker.
_CHUNK_ROWS = 4096
_CHUNK_BYTES = 4_000_000
# Most topics accept batches of this size; a larger message is sent in a batch of its own.
_BATCH_BYTES = 900_000
# How many chunks are sent per second under a rate limit.
_CHUNKS_PER_SECOND = 20
# Replicas of a new topic, given as many brokers; common in production clusters.
_REPLICAS = 3


class _Row(NamedTuple):
    number: int
    message: InputMessage
    time: int | None


@dataclass(frozen=True, slots=True)
class Produced:
    """The number and size of the acknowledged messages.

    The topic keeps messages for ``retention`` milliseconds, None for ever; ``expired`` ones were
    older when they were sent, and are deleted soon. Columns ``left_out`` are not in the schema.
    """

    topic: str
    partitions: int
    records: int
    bytes: int
    seconds: float
    expired: int
    retention: int | None
    left_out: tuple[str, ...]


async def produce(
    source: InputFile,
    topic: str,
    settings: Settings,
    *,
    rate: float | None,
    create_partitions: int | None,
    schema_file: Path | None = None,
    report: Report,
) -> Produced:
    """Send each message of the source to the topic, at most `rate` per second.

    With `create_partitions`, the topic is created first with that many partitions. A message has
    the time that the setting `time` finds in it, else that of its sending; a new topic keeps
    messages for ever then, as rows may be old. In a format with schemas rows follow that of
    `schema_file`, else the latest one of the topic.

    Raises
    ------
    BrokerError
        The broker is unavailable or refuses the client.
    TopicError
        The topic is missing, cannot be created, or a row is too large for it.
    InputFileError
        The file cannot be read, or a row does not follow the schema.
    SettingsError, RegistryError
        As for `row_encoder`.
    """
    left_out = set[str]()
    encode = await row_encoder(source, settings, topic, schema_file, left_out)
    times = None if settings.time is None else TimeReader(settings.time)
    chunks = _chunks(source, _chunk_rows(rate), times, encode)
    first = list(islice(chunks, 1))  # what is wrong with it is told before there is a topic
    async with connected_admin(settings) as admin:
        if create_partitions is not None:
            await create_topic(admin, topic, create_partitions, for_ever=settings.time is not None)
        partitions = await partition_count(admin, topic)
        config = await _config(admin, topic)
    began = monotonic()
    records = size = expired = 0
    kept = retention(config).get(RETENTION_MS, FOREVER)
    batch_bytes = min(_BATCH_BYTES, int(config.get(MAX_BYTES, _BATCH_BYTES)))
    # Idempotent, so that a retried batch is written once.
    producer = AIOKafkaProducer(
        **producer_arguments(settings), enable_idempotence=True, max_batch_size=batch_bytes
    )
    async with connected(producer, settings):
        for chunk in chain(first, chunks):
            if rate is not None:
                await asyncio.sleep(began + records / rate - monotonic())
            await _send_chunk(producer, topic, partitions, chunk)
            records += len(chunk)
            size += sum(len(row.message.value) for row in chunk)
            if kept >= 0:
                oldest = 1000 * time() - kept
                expired += sum(row.time is not None and row.time < oldest for row in chunk)
            report(records, source.share_read)
    took, limit = monotonic() - began, kept if kept >= 0 else None
    names = tuple(sorted(left_out))
    return Produced(topic, partitions, records, size, took, expired, limit, names)


async def _config(admin: AIOKafkaAdminClient, topic: str) -> Configuration:
    """Return the configuration of the topic, as far as the user may know it."""
    with suppress(KafkaError):
        return await topic_config(admin, topic)
    return {}


async def create_topic(
    admin: AIOKafkaAdminClient, topic: str, partitions: int, *, for_ever: bool = False
) -> None:
    """Create a topic, which may keep messages ``for_ever``, and wait until the brokers know it.

    Raises
    ------
    TopicError
        The broker does not create it.
    """
    try:
        nodes = len((await admin.describe_cluster())["brokers"])
        config = {RETENTION_MS: str(FOREVER)} if for_ever else {}
        new = NewTopic(topic, partitions, min(_REPLICAS, nodes), topic_configs=config)
        await create(admin, new, may_exist=False)
    except KafkaError as error:
        raise TopicError(f"topic {topic} cannot be created: {reason(error)}") from error


def _chunk_rows(rate: float | None) -> int:
    if rate is None:
        return _CHUNK_ROWS
    return min(_CHUNK_ROWS, max(1, round(rate / _CHUNKS_PER_SECOND)))


def _chunks(
    source: Iterable[InputMessage], rows: int, times: TimeReader | None, encode: Encode
) -> Iterator[list[_Row]]:
    """Yield the rows in lists; each is sent before the next one is made."""
    chunk: list[_Row] = []
    size = sent = 0
    try:
        for number, row in enumerate(source):
            message = row._replace(value=encode(row.value))
            chunk.append(_Row(number, message, None if times is None else times.of(row.value)))
            size += len(message.value)
            if len(chunk) == rows or size >= _CHUNK_BYTES:
                yield chunk
                chunk, size, sent = [], 0, number + 1
    except InputFileError as error:
        told = f"the first {sent:,} rows are sent" if sent else "no row is sent"
        raise InputFileError(f"{error}; {told}") from None
    if chunk:
        yield chunk


async def _send_chunk(
    producer: AIOKafkaProducer, topic: str, partitions: int, chunk: Sequence[_Row]
) -> None:
    of_partition: dict[int, list[_Row]] = {}
    for row in chunk:
        partition = partition_of(row.message.key, row.number, partitions)
        of_partition.setdefault(partition, []).append(row)
    await asyncio.gather(
        *(_send(producer, topic, partition, rows) for partition, rows in of_partition.items())
    )


async def _send(
    producer: AIOKafkaProducer, topic: str, partition: int, rows: Sequence[_Row]
) -> None:
    sent = 0
    while sent < len(rows):
        batch, first = producer.create_batch(), sent
        while sent < len(rows) and _append(batch, rows[sent].message, rows[sent].time):
            sent += 1
        try:
            await (await producer.send_batch(batch, topic, partition=partition))
        except MessageSizeTooLargeError:
            raise _too_large(topic, rows[first:sent]) from None
        except KafkaError as error:
            why = reason(error, "Write", topic)
            raise BrokerError(f"topic {topic}, row {rows[first].number}: {why}") from error


def _too_large(topic: str, rows: Sequence[_Row]) -> TopicError:
    size = sum(len(row.message.value) for row in rows)
    what = f"topic {topic}: row {rows[0].number}"
    if len(rows) == 1:
        return TopicError(f"{what} of {size} bytes is larger than it accepts")
    return TopicError(
        f"{what} and {len(rows) - 1} others, {size} bytes in one batch, are more than it accepts; "
        "allow DescribeConfigs, which tells how many bytes it does"
    )


def _append(batch: BatchBuilder, message: InputMessage, time: int | None) -> bool:
    appended = batch.append(timestamp=time, key=message.key, value=message.value)
    return appended is not None
