"""Reads a log, from a file or a topic, in lists of records of one partition."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, nullcontext
from time import monotonic

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, KafkaTimeoutError

from faust_oslrau.app.errors import BrokerError, TopicError
from faust_oslrau.app.kafka.clients import connected, connected_admin, partition_count
from faust_oslrau.app.kafka.rights import reason
from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.kafka.topic_ids import topic_ids
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import KafkaRecord, Record

from .input_files import InputFile
from .input_messages import InputMessage
from .log_schemas import LogSchemas
from .partitioner import partition_of
from .progress import Report

# Records between two progress reports.
_CHUNK = 4096
_POLL_MS = 1000
# How long the broker may return nothing before it counts as gone.
_SILENT_SECONDS = 30.0

Process = Callable[[Sequence[KafkaRecord]], None]
"""Takes the next records of one partition."""


def read_file(
    source: InputFile, topic: str, partitions: int, process: Process, report: Report
) -> None:
    """Process a file as if `produce` had sent it to an empty topic with this many partitions."""
    n = 0
    for records in file_records(source, topic, partitions):
        process(records)
        n += len(records)
        report(n, source.share_read)


def file_records(
    source: Iterable[InputMessage], topic: str, partitions: int
) -> Iterator[list[Record]]:
    """Yield the rows as records of the topic, in lists that each hold one partition."""
    waiting: defaultdict[int, list[Record]] = defaultdict(list)
    offsets: Counter[int] = Counter()
    for row, (key, value) in enumerate(source):
        partition = partition_of(key, row, partitions)
        waiting[partition].append(Record(topic, partition, offsets[partition], None, key, value))
        offsets[partition] += 1
        if row % _CHUNK == _CHUNK - 1:
            yield from _by_partition(waiting)
            waiting.clear()
    yield from _by_partition(waiting)


def _by_partition(waiting: Mapping[int, list[Record]]) -> Iterator[list[Record]]:
    return (records for _, records in sorted(waiting.items()))


async def read_topic(
    topic: str,
    start: int | None,
    end: int | None,
    settings: Settings,
    process: Process,
    report: Report,
    schemas: LogSchemas | None = None,
) -> None:
    """Process the offsets from `start` to before `end` in each partition of a topic.

    One partition comes after the other: another run gives the same records in the same order. None
    means the first record of the log, and its current end. `schemas` knows those of the records,
    None for JSON.

    Raises
    ------
    BrokerError
        The broker is unavailable, or goes away.
    RegistryError
        The registry is to be asked for a schema, and does not answer.
    TopicError
        The topic is missing, or no longer has the offset `start`.
    """
    partitions = await topic_partitions(topic, settings)
    consumer = AIOKafkaConsumer(
        **client_arguments(settings),
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="none",
        max_partition_fetch_bytes=settings.max_output_bytes,
    )
    async with connected(consumer, settings), aclosing(schemas) if schemas else nullcontext():
        try:
            tps = [TopicPartition(topic, partition) for partition in range(partitions)]
            ranges = await _ranges(consumer, tps, start, end)
            total = sum(last - first for first, last in ranges.values())
            n = 0
            if schemas is not None:
                ids = await topic_ids(consumer._client, [topic])
                for tp in tps:
                    await schemas.load(tp, ids.get(topic))
            async for records in _read(consumer, ranges):
                if schemas is not None:
                    await schemas.prepare(records)
                process(records)
                n += len(records)
                left = sum(last - first for first, last in ranges.values())
                report(n, 1 - left / total)
        except KafkaError as error:
            raise BrokerError(f"topic {topic}: {reason(error)}") from error


async def topic_partitions(topic: str, settings: Settings) -> int:
    """Return how many partitions a topic has; raises as `read_topic`."""
    async with connected_admin(settings) as admin:
        return await partition_count(admin, topic)


_Ranges = dict[TopicPartition, tuple[int, int]]


async def _ranges(
    consumer: AIOKafkaConsumer,
    tps: list[TopicPartition],
    start: int | None,
    end: int | None,
) -> _Ranges:
    consumer.assign(tps)
    firsts = await consumer.beginning_offsets(tps)
    lasts = await consumer.end_offsets(tps)
    ranges: _Ranges = {}
    for tp in tps:
        first = firsts[tp] if start is None else start
        last = lasts[tp] if end is None else min(end, lasts[tp])
        if first < firsts[tp]:
            raise TopicError(
                f"topic {tp.topic} partition {tp.partition}: expected offset {first}, "
                f"the log begins at {firsts[tp]}"
            )
        ranges[tp] = (first, max(first, last))
    return ranges


async def _read(consumer: AIOKafkaConsumer, ranges: _Ranges) -> AsyncIterator[list[ConsumerRecord]]:
    """Yield the records of each partition in turn, and advance the starts of the ranges."""
    for tp, (first, last) in ranges.items():
        consumer.assign([tp])  # or the others would be fetched, too, and kept
        consumer.seek(tp, first)
        deadline = monotonic() + _SILENT_SECONDS
        while (start := ranges[tp][0]) < last:
            fetched = await consumer.getmany(tp, timeout_ms=_POLL_MS, max_records=_CHUNK)
            # The position also passes transaction markers and compacted records.
            position = min(await consumer.position(tp), last)
            ranges[tp] = (position, last)
            records = [record for record in fetched.get(tp, ()) if record.offset < last]
            if records:
                yield records
            if position > start:
                deadline = monotonic() + _SILENT_SECONDS
            elif monotonic() > deadline:
                raise KafkaTimeoutError(f"{tp} returns no records from {start} to {last}")
