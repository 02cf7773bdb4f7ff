"""Scores without a worker: a file, or a range of a topic, through the same pipeline as live."""

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

# Records between two writes and two lines of progress.
_CHUNK = 4096
_POLL_MS = 1000


class Sink(Protocol):
    """Where messages go."""

    def write(self, messages: Sequence[OutMessage]) -> None:
        """Append messages of one partition, in their order."""


@dataclass(slots=True)
class Replayed:
    """What a replay led to so far."""

    records: int = 0
    scored: int = 0
    anomalies: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            "records": self.records,
            "scored": self.scored,
            "anomalies": self.anomalies,
            "rejected": dict(self.rejected),
        }


class Replay:
    """One pipeline for each partition, and what came out of them.

    Parameters
    ----------
    settings
        Of the live run that the scores are to equal.
    scores, dead_letters
        Where the messages go.
    """

    def __init__(self, settings: Settings, scores: Sink, dead_letters: Sink) -> None:
        self._settings = settings
        self._scores = scores
        self._dead_letters = dead_letters
        self._pipelines: dict[tuple[str, int], PartitionPipeline] = {}
        self.replayed = Replayed()

    def process(self, records: Sequence[KafkaRecord]) -> None:
        """Score the next records of one partition."""
        first = records[0]
        place = (first.topic, first.partition)
        if place not in self._pipelines:
            self._pipelines[place] = PartitionPipeline(*place, self._settings)
        block = self._pipelines[place].process(records)
        self._scores.write(block.scores)
        self._dead_letters.write(block.dead_letters)
        self.replayed.records += len(records)
        self.replayed.scored += len(block.scores)
        self.replayed.anomalies += len(block.anomalies)
        self.replayed.rejected += block.reasons


def replay_file(
    source: InputFile, topic: str, partitions: int, replay: Replay, report: Report
) -> None:
    """Score a file as if `produce` had sent it to an empty topic of so many partitions."""
    for records in file_records(source, topic, partitions):
        replay.process(records)
        report(replay.replayed.records, source.share_read)


def file_records(
    source: Iterable[InputMessage], topic: str, partitions: int
) -> Iterator[list[Record]]:
    """Yield the rows as records of the topic, again and again some of one partition."""
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
    """Score the offsets from `start` up to, without it, `end` in each partition of a topic.

    None means the first record that is there, and the end of the log as it is now.

    Raises
    ------
    BrokerError
        The broker is away.
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
            places = [TopicPartition(topic, partition) for partition in range(partitions)]
            ranges = await _ranges(consumer, places, start, end)
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
    places: list[TopicPartition],
    start: int | None,
    end: int | None,
) -> _Ranges:
    consumer.assign(places)
    firsts = await consumer.beginning_offsets(places)
    lasts = await consumer.end_offsets(places)
    ranges: _Ranges = {}
    for place in places:
        first = firsts[place] if start is None else start
        last = lasts[place] if end is None else min(end, lasts[place])
        if first < firsts[place]:
            raise TopicError(
                f"topic {place.topic} partition {place.partition}: expected offset {first}, "
                f"the log begins at {firsts[place]}"
            )
        ranges[place] = (first, max(first, last))
        consumer.seek(place, first)
    return ranges


async def _read(consumer: AIOKafkaConsumer, ranges: _Ranges) -> AsyncIterator[list[ConsumerRecord]]:
    """Yield records of one partition, and shorten the ranges by what has been read."""
    while unfinished := [place for place, (first, last) in ranges.items() if first < last]:
        found = await consumer.getmany(*unfinished, timeout_ms=_POLL_MS, max_records=_CHUNK)
        for place in unfinished:
            # The position also passes what is no record: markers of transactions, compacted ones.
            last = ranges[place][1]
            ranges[place] = (min(await consumer.position(place), last), last)
            records = [record for record in found.get(place, ()) if record.offset < last]
            if records:
                yield records
