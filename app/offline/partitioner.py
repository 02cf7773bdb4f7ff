"""Where a row of a file goes: the same partition and offset in `produce` and in `replay`."""

from __future__ import annotations

from aiokafka.partitioner import murmur2


def partition_of(key: bytes | None, row: int, partitions: int) -> int:
    """Return `row` modulo `partitions`, or for a key the partition that Kafka clients choose."""
    if key is None:
        return row % partitions
    return int(murmur2(key) & 0x7FFFFFFF) % partitions
