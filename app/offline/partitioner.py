"""Assigns the rows of a file to partitions, identically in `produce` and `replay`."""

from __future__ import annotations

from aiokafka.partitioner import murmur2

MOST_PARTITIONS = 100_000
"""Most partitions of a topic that a command makes or imitates; clusters have hardly more in all."""


def partition_of(key: bytes | None, row: int, partitions: int) -> int:
    """Return the partition that Kafka clients choose for `key`; without one, `row` modulo."""
    if key is None:
        return row % partitions
    return int(murmur2(key) & 0x7FFFFFFF) % partitions
