"""Scores a file, or a range of a topic, with the worker's pipeline but without a worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from faust_oslrau.app.errors import BrokerError, TopicError
from faust_oslrau.app.kafka.clients import connected, connected_admin, partition_count
from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import KafkaRecord, OutMessage, Record

from .input_files import InputFile, InputMessage
from .partitioner import partition_of
from .progress import Report

# Records between two writes and two progress reports.
_CHUNK = 4096
_POLL_MS = 1000


class Sink(Protocol):
    """A destination of messages."""

    def write(self, messages: Sequence[OutMessage]) -> None:
        """Append messages of one partition, in order."""


@dataclass(slots=True)
class Replayed:
    """The counts of a replay so far."""

    records: int = 0
    scored: int = 0
    anomalies: int = 0
    incidents: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            "records": self.records,
            "scored": self.scored,
            "anomalies": self.anomalies,
            "incidents": self.incidents,
            "rejected": dict(self.rejected),
        }


class Replay:
    """Scores records with one pipeline for each partition.

    Parameters
    ----------
    settings
        The settings of the worker whose scores are reproduced.
    scores, anomalies, dead_letters
        The destinations of the messages of each topic.
    """

    def __init__(
        self, settings: Settings, scores: Sink, anomalies: Sink, dead_letters: Sink
    ) -> None:
        self._settings = settings
        self._scores = scores
        self._anomalies = anomalies
        self._dead_letters = dead_letters
        self._pipelines: dict[tuple[str, int], PartitionPipeline] = {}
        self.replayed = Replayed()

    def process(self, records: Sequence[KafkaRecord]) -> None:
        """Score the next records of one partition."""
        tp = (records[0].topic, records[0].partition)
        if tp not in self._pipelines:
            self._pipelines[tp] = PartitionPipeline(*tp, self._settings)
        block = self._pipelines[tp].process(records)
        self._scores.write(block.scores)
        self._anomalies.write(block.alerts)
        self._dead_letters.write(block.dead_letters)
        self.replayed.records += len(records)
        self.replayed.scored += len(block.scores)
        self.replayed.anomalies += len(block.anomalies)
        self.replayed.incidents += block.reached["minor"]
        self.replayed.rejected += block.reasons


def replay_file(
    source: InputFile, topic: str, partitions: int, replay: Replay, report: Report
) -> None:
    """Score a file as if `produce` had sent it to an empty topic with this many partitions."""
    for records in file_records(source, topic, partitions):
        replay.process(records)
        report(replay.replayed.records, source.share_read)


def file_records(
    source: Iterable[InputMessage], topic: str, partitions: int
) -> Iterator[list[Record]]:
    """Yield the rows as records of the topic, in lists that each hold one partition."""
    waiting: list[list[Record]] = [[] for _ in range(partitions)]
    offsets = [0] * partitions
    for row, (key, value) in enumerate(source):
        partition = partition_of(key, row, partitions)
        waiting[partition].append(Record(topic, partition, offsets[partition], None, key, value))
        offsets[partition] += 1
        if row % _CHUNK == _CHUNK - 1:
            yield from filter(None, waiting)
            waiting = [[] for _ in range(partitions)]
    yield from filter(None, waiting)


async def replay_topic(
    topic: str,
    start: int | None,
    end: int | None,
    settings: Settings,
    replay: Replay,
    report: Report,
) -> None:
    """Score the offsets from `start` to before `end` in each partition of a topic.

    None means the first record of the log, and its current end.

    Raises
    ------
    BrokerError
        The broker is unavailable.
    TopicError
        The topic is missing, or no longer has the offset `start`.
    """
    async with connected_admin(settings) as admin:
        partitions = await partition_count(admin, topic)
    consumer = AIOKafkaConsumer(
        **client_arguments(settings),
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="none",
        max_partition_fetch_bytes=settings.max_output_bytes,
    )
    async with connected(consumer, settings):
        try:
            tps = [TopicPartition(topic, partition) for partition in range(partitions)]
            ranges = await _ranges(consumer, tps, start, end)
            total = sum(last - first for first, last in ranges.values())
            async for records in _read(consumer, ranges):
                replay.process(records)
                left = sum(last - first for first, last in ranges.values())
                report(replay.replayed.records, 1 - left / total)
        except KafkaError as error:
            raise BrokerError(f"topic {topic}: {error!r}") from error


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
        consumer.seek(tp, first)
    return ranges


async def _read(consumer: AIOKafkaConsumer, ranges: _Ranges) -> AsyncIterator[list[ConsumerRecord]]:
    """Yield records of one partition at a time, and advance the starts of the ranges."""
    while unfinished := [tp for tp, (first, last) in ranges.items() if first < last]:
        fetched = await consumer.getmany(*unfinished, timeout_ms=_POLL_MS, max_records=_CHUNK)
        for tp in unfinished:
            # The position also passes transaction markers and compacted records.
            last = ranges[tp][1]
            ranges[tp] = (min(await consumer.position(tp), last), last)
            records = [record for record in fetched.get(tp, ()) if record.offset < last]
            if records:
                yield records
