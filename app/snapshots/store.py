"""The interface of a snapshot store, which topic, folder and bucket implement."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from faust_oslrau.learner.state import Extent

if TYPE_CHECKING:  # Faust takes a second to import, which some commands need not wait for
    from faust.types import TP


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot in a store, which may be damaged; the reader closes its `data`.

    `where` names the file, the object or the topic's offset; `timestamp` is the time of writing in
    milliseconds since 1970.
    """

    where: str
    next_offset: int
    timestamp: int
    data: Extent


class SnapshotStore(Protocol):
    """Stores the last snapshots of each partition."""

    async def open(self, tp: TP, *, read_only: bool = False) -> None:
        """Prepare to load and save the snapshots of an assigned partition.

        With `read_only`, nothing changes in the store, and the partition's owner goes on.

        Raises
        ------
        SnapshotError
            The store cannot be used.
        LostPartitionError
            Another worker opens the partition at this moment.
        """

    def load(self, tp: TP) -> AsyncGenerator[StoredSnapshot, None]:
        """Yield the snapshots of an open partition, the one with the highest offset first.

        Those that cannot be read are logged and skipped. The caller checks whether a snapshot is
        damaged, and closes the generator, which may be connected, if it does not read all.
        """

    async def reject(self, tp: TP, stored: StoredSnapshot) -> None:
        """Exclude a damaged snapshot: it is not loaded again, and the next one may replace it.

        Raises
        ------
        SnapshotError
            The store does not allow it.
        """

    async def save(self, tp: TP, next_offset: int, data: Extent) -> None:
        """Write a snapshot of an open partition atomically.

        Raises
        ------
        SnapshotError
            It could not be written; the former snapshots remain.
        LostPartitionError
            Another worker owns the partition.
        """

    async def discard(self, tp: TP) -> None:
        """Delete all snapshots of an open partition; raises as `save`."""

    async def close(self) -> None:
        """Close all partitions."""


class SnapshotError(Exception):
    """A snapshot could not be written or read."""


class NoStore:
    """Stores nothing: a restarted worker learns again from the start of the log."""

    async def open(self, tp: TP, *, read_only: bool = False) -> None:
        """Do nothing."""

    async def load(self, tp: TP) -> AsyncGenerator[StoredSnapshot, None]:
        """Yield nothing."""
        return
        yield  # makes this a generator

    async def reject(self, tp: TP, stored: StoredSnapshot) -> None:
        """Do nothing."""

    async def save(self, tp: TP, next_offset: int, data: Extent) -> None:
        """Do nothing."""

    async def discard(self, tp: TP) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""
