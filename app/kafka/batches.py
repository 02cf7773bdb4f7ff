"""Packs records into batches before they enter Faust, which handles one event for each poll."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import faust
from faust.types import TP

from faust_oslrau.topics import KafkaRecord


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Consecutive records of one partition.

    `position` is the offset at which the fetch began. The log holds no record from `position` to
    the last of these records that is not among them.
    """

    position: int
    records: Sequence[KafkaRecord]

    @property
    def next_offset(self) -> int:
        """Offset after the last record."""
        return self.records[-1].offset + 1

    @property
    def tp(self) -> TP:
        """Topic and partition."""
        return TP(self.records[0].topic, self.records[0].partition)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a poll has fetched, one or more batches, with the attributes of a single record.

    Those that tell where it is from are of its last record, others it does not have.
    """

    batches: Sequence[RecordBatch]

    key: ClassVar[None] = None
    headers: ClassVar[None] = None
    checksum: ClassVar[None] = None
    timestamp_type: ClassVar[int] = 0
    serialized_key_size: ClassVar[int] = 0
    serialized_value_size: ClassVar[int] = 0

    @property
    def topic(self) -> str:
        """Topic of the last record."""
        return self._last.topic

    @property
    def partition(self) -> int:
        """Partition of the last record."""
        return self._last.partition

    @property
    def offset(self) -> int:
        """Offset of the last record."""
        return self._last.offset

    @property
    def timestamp(self) -> int | None:
        """Timestamp of the last record in milliseconds."""
        return self._last.timestamp

    @property
    def value(self) -> Fetched:
        """Itself."""
        return self

    @property
    def tp(self) -> TP:
        """Topic and partition of the last record."""
        return self.batches[-1].tp

    @property
    def _last(self) -> KafkaRecord:
        return self.batches[-1].records[-1]


def pack(position: int, records: Sequence[KafkaRecord], size: int) -> list[RecordBatch]:
    """Return the records of a fetch that began at `position` in batches of at most `size`."""
    batches = []
    for first in range(0, len(records), size):
        batch = RecordBatch(position, records[first : first + size])
        batches.append(batch)
        position = batch.next_offset
    return batches


def join(batches: Iterable[RecordBatch], size: int) -> Iterator[RecordBatch]:
    """Yield consecutive batches of one partition as one, of at most `size` records where joined.

    A batch is not joined to the one before it if its first record is not the next one in the log,
    as the caller may have to find out what became of the records between them.
    """
    joined: RecordBatch | None = None
    for batch in batches:
        if joined is None:
            joined = batch
        elif _continues(joined, batch) and len(joined.records) + len(batch.records) <= size:
            joined = RecordBatch(joined.position, [*joined.records, *batch.records])
        else:
            yield joined
            joined = batch
    if joined is not None:
        yield joined


def _continues(first: RecordBatch, second: RecordBatch) -> bool:
    return first.next_offset == second.position == second.records[0].offset


class BatchSchema(faust.Schema[Any, Any]):
    """Passes what was fetched to the agent unchanged."""

    def loads_key(self, app: Any, message: Any, **options: Any) -> Any:
        """Return no key: each record has its own."""
        return None

    def loads_value(self, app: Any, message: Any, **options: Any) -> Any:
        """Return what was fetched."""
        return message.value
