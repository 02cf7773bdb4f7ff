"""Stores snapshots in a compacted Kafka topic.

A source partition has two slots, written in turn, in the topic's partition of the same number. A
slot consists of chunks and a manifest, each with its own key, so that compaction retains the last
of each. One transaction writes the chunks and the manifest. The manifest names the offsets of the
chunks and of the other slot's manifest. So a restore searches for the last manifest backwards from
the end of the log, and reads only what it names.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiokafka.errors import KafkaError

from faust_oslrau.app.kafka.rights import reason
from faust_oslrau.app.kafka.transactions import (
    LostPartitionError,
    Producers,
    TooLargeError,
    Transaction,
)
from faust_oslrau.learner.state import Extent
from faust_oslrau.topics import OutMessage

from .manifest import (
    CHUNK_BYTES,
    Manifest,
    Slots,
    chunk_keys,
    manifest_key,
    manifest_value,
    new_checksum,
)
from .store import SnapshotError, StoredSnapshot
from .tail import TailReader

if TYPE_CHECKING:
    from faust.types import TP


class TopicStore:
    """Stores the last two snapshots of each partition in a topic.

    Parameters
    ----------
    topic
        The compacted topic, with at least as many partitions as the sources.
    app_id
        The deployment's id, part of all keys.
    producers
        Transactional producers of the open partitions.
    client_arguments
        Connection arguments of aiokafka's clients.
    """

    def __init__(
        self, topic: str, app_id: str, producers: Producers, client_arguments: Mapping[str, Any]
    ) -> None:
        self._topic = topic
        self._app_id = app_id
        self._producers = producers
        self._arguments = client_arguments
        self._slots: dict[TP, Slots] = {}

    async def open(self, tp: TP, *, read_only: bool = False) -> None:
        """Read the manifests; unless it is only read, the partition's producer must be open.

        Before the first worker has begun, there is no topic to read.
        """
        async with self._reader(tp) as reader:
            is_there = not read_only or await reader.exists()
            self._slots[tp] = await reader.slots(self._prefix(tp)) if is_there else Slots()

    async def load(self, tp: TP) -> AsyncGenerator[StoredSnapshot, None]:
        """Yield the partition's snapshots, the one with the highest offset first."""
        slots = self._slot(tp)
        if not slots.manifests:
            return
        async with self._reader(tp) as reader:
            for slot in slots.newest_first():
                manifest = slots.manifests[slot]
                where = f"{self._topic}/{tp[1]} at {manifest.offset}"
                # Damaged chunks become empty data, which the caller rejects.
                found = await reader.chunks(manifest, self._prefix(tp), slot)
                data = Extent.of(b"") if found is None else found
                yield StoredSnapshot(where, manifest.next_offset, manifest.timestamp, data)

    async def reject(self, tp: TP, stored: StoredSnapshot) -> None:
        """Let the next snapshot overwrite this one's slot."""
        manifests = self._slots[tp].manifests
        for slot in list(manifests):
            if manifests[slot].next_offset == stored.next_offset:
                del manifests[slot]

    async def save(self, tp: TP, next_offset: int, data: Extent) -> None:
        """Overwrite the older snapshot."""
        slots = self._slot(tp)
        slot = slots.to_write()
        async with self._transaction(tp) as transaction:
            manifest = await self._write(transaction, tp, slots, slot, next_offset, data)
        slots.record(slot, manifest)

    async def discard(self, tp: TP) -> None:
        """Write tombstones over both slots."""
        tombstones = [_message(key, None) for key in self._slot(tp).keys(self._prefix(tp))]
        if not tombstones:
            return
        async with self._transaction(tp) as transaction:
            await transaction.send(self._topic, tp[1], tombstones)
        self._slots[tp] = Slots()

    async def close(self) -> None:
        """Forget the manifests of all partitions."""
        self._slots.clear()

    @asynccontextmanager
    async def _transaction(self, tp: TP) -> AsyncIterator[Transaction]:
        producer = self._producers.of(tp)
        try:
            if producer.has_failed:
                await producer.open()
            async with producer.transaction() as transaction:
                yield transaction
        except (KafkaError, TooLargeError, OSError) as error:
            why = reason(error, "Write", self._topic)
            raise SnapshotError(f"topic {self._topic}/{tp[1]}: {why}") from error

    async def _write(
        self,
        transaction: Transaction,
        tp: TP,
        slots: Slots,
        slot: int,
        next_offset: int,
        data: Extent,
    ) -> Manifest:
        prefix = self._prefix(tp)
        chunks: list[int] = []
        checksum = new_checksum()
        # One after the other: all at once would be a copy of a snapshot of perhaps 100 MB.
        for number, part in enumerate(data.pieces(CHUNK_BYTES)):
            checksum.update(part)
            (key,) = chunk_keys(prefix, slot, number + 1, number)
            chunks += await transaction.send(self._topic, tp[1], [_message(key, part)])
        if min(chunks) < 0:
            raise SnapshotError(f"topic {self._topic}/{tp[1]}: the broker returned no offset")
        left_over = chunk_keys(prefix, slot, slots.lengths.get(slot, 0), len(chunks))
        tombstones = [_message(key, None) for key in left_over]
        await transaction.send(self._topic, tp[1], tombstones)
        previous = slots.previous(slot)
        value = manifest_value(next_offset, data.size, checksum.hexdigest(), chunks, previous)
        message = _message(manifest_key(prefix, slot), value)
        (offset,) = await transaction.send(self._topic, tp[1], [message])
        return Manifest.from_record(value, offset, round(1000 * time.time()))

    def _slot(self, tp: TP) -> Slots:
        if tp not in self._slots:
            raise LostPartitionError("it has been revoked")
        return self._slots[tp]

    def _reader(self, tp: TP) -> TailReader:
        return TailReader(self._topic, tp[1], self._arguments)

    def _prefix(self, tp: TP) -> str:
        return f"{self._app_id}/{tp[0]}/{tp[1]}"


def _message(key: bytes, value: bytes | None) -> OutMessage:
    return OutMessage(0, key, value, None)
