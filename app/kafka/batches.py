"""Packs records into batches before they enter Faust, which handles one event for each batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import faust
from faust.types import TP

from faust_oslrau.topics import KafkaRecord


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Consecutive records of one partition, with the attributes of a single consumer record.

    `position` is the offset at which the fetch began. The log holds no record from `position` to
    the last of these records that is not among them.
    """

    position: int
    records: Sequence[KafkaRecord]

    # Attributes that Faust copies from a consumer record, and that a batch does not have.
    key: ClassVar[None] = None
    headers: ClassVar[None] = None
    checksum: ClassVar[None] = None
    timestamp_type: ClassVar[int] = 0
    serialized_key_size: ClassVar[int] = 0
    serialized_value_size: ClassVar[int] = 0

    @property
    def topic(self) -> str:
        """Topic of the records."""
        return self.records[0].topic

    @property
    def partition(self) -> int:
        """Partition of the records."""
        return self.records[0].partition

    @property
    def offset(self) -> int:
        """Offset of the last record."""
        return self.records[-1].offset

    @property
    def next_offset(self) -> int:
        """Offset after the last record."""
        return self.offset + 1

    @property
    def timestamp(self) -> int | None:
        """Timestamp of the last record in milliseconds."""
        return self.records[-1].timestamp

    @property
    def value(self) -> RecordBatch:
        """The batch itself."""
        return self

    @property
    def tp(self) -> TP:
        """Topic and partition."""
        return TP(self.topic, self.partition)


def pack(position: int, records: Sequence[KafkaRecord], size: int) -> list[RecordBatch]:
    """Return the records of a fetch that began at `position` in batches of at most `size`."""
    batches = []
    for first in range(0, len(records), size):
        batch = RecordBatch(position, records[first : first + size])
        batches.append(batch)
        position = batch.next_offset
    return batches


class BatchSchema(faust.Schema[Any, Any]):
    """Passes a batch to the agent unchanged."""

    def loads_key(self, app: Any, message: Any, **options: Any) -> Any:
        """Return no key: each record of a batch has its own."""
        return None

    def loads_value(self, app: Any, message: Any, **options: Any) -> Any:
        """Return the batch."""
        return message.value
