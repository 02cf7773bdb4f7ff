"""Where snapshots are kept: the interface that folder and topic share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # Faust takes a second to import, which commands need not wait for
    from faust.types import TP


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot's bytes as they were found.

    `where` is its place in the store, `timestamp` when it was written in milliseconds.
    """

    where: str
    next_offset: int
    timestamp: int
    data: bytes


class SnapshotStore(Protocol):
    """Keeps the last snapshots of each partition."""

    async def open(self, tp: TP) -> None:
        """Get ready for a partition that this worker was given; those before it lose it.

        Raises
        ------
        SnapshotError
            The store cannot be used.
        """

    def load(self, tp: TP) -> AsyncIterator[StoredSnapshot]:
        """Yield the snapshots of an open partition, the one with the highest offset first.

        What cannot be read is logged and left out; what is not whole is for the reader to find.
        """

    async def reject(self, tp: TP, stored: StoredSnapshot) -> None:
        """Have a snapshot that turned out damaged make room for the next one.

        Raises
        ------
        SnapshotError
            The store does not allow it.
        """

    async def save(self, tp: TP, next_offset: int, data: bytes) -> None:
        """Write a snapshot of an open partition; it is there as a whole or not at all.

        Raises
        ------
        SnapshotError
            It could not be written; those before are still there.
        LostPartitionError
            Another worker has taken the partition.
        """

    async def discard(self, tp: TP) -> None:
        """Forget all snapshots of an open partition; raises as `save`."""

    async def close(self) -> None:
        """Let go of all partitions."""


class SnapshotError(Exception):
    """A snapshot could not be written or read."""


class NoStore:
    """Keeps nothing: a restart learns from the start."""

    async def open(self, tp: TP) -> None:
        """Do nothing."""

    async def load(self, tp: TP) -> AsyncIterator[StoredSnapshot]:
        """Yield nothing."""
        return
        yield  # makes this a generator

    async def reject(self, tp: TP, stored: StoredSnapshot) -> None:
        """Do nothing."""

    async def save(self, tp: TP, next_offset: int, data: bytes) -> None:
        """Do nothing."""

    async def discard(self, tp: TP) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""
