"""Assigns the rows of a file to partitions, identically in `produce` and `replay`."""

from __future__ import annotations

from aiokafka.partitioner import murmur2


def partition_of(key: bytes | None, row: int, partitions: int) -> int:
    """Return the partition that Kafka clients choose for `key`; without one, `row` modulo."""
    if key is None:
        return row % partitions
    return int(murmur2(key) & 0x7FFFFFFF) % partitions
