"""Lists a deployment's snapshots, and changes where its partitions continue."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, OffsetAndMetadata, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from faust_oslrau.app import files
from faust_oslrau.app.errors import BrokerError, OslrauError, TopicError
from faust_oslrau.app.kafka import rights
from faust_oslrau.app.kafka.clients import connected, connected_admin, partition_count
from faust_oslrau.app.kafka.positions import recorded_start, recorded_topic, start_metadata
from faust_oslrau.app.kafka.security import client_arguments, producer_arguments
from faust_oslrau.app.kafka.transactions import LostPartitionError, Producers
from faust_oslrau.app.pipeline import (
    Epochs,
    Snapshot,
    changes,
    check_settings,
    initial_digest,
    profile_data,
)
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import SnapshotError, SnapshotStore, StoredSnapshot
from faust_oslrau.app.snapshots.configured import snapshot_store
from faust_oslrau.learner import StreamScorer
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state import Extent


class InspectionError(OslrauError):
    """Snapshots cannot be read or changed."""


@dataclass(frozen=True, slots=True)
class Found:
    """A snapshot in the store, which is open; `problem` tells why it cannot be decoded.

    `snapshot` and `successor`, that of the model which is to follow, are without their scorers.
    """

    tp: TopicPartition
    stored: StoredSnapshot
    snapshot: Snapshot | None = None
    scorer: Extent | None = None
    successor: Snapshot | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """The group's committed offset, the start of learning, and the bounds of the log.

    `committed` and `start` are None if nothing is committed or recorded.
    """

    tp: TopicPartition
    committed: int | None
    start: int | None
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """How a partition is to continue: with a snapshot, or without one from `start` on.

    The next worker emits from `offset` on; None leaves the group's committed offset unchanged.
    """

    tp: TopicPartition
    start: int | None
    offset: int | None
    snapshot: Snapshot | None = None


async def partitions(settings: Settings, chosen: str | None) -> list[TopicPartition]:
    """Return all partitions of the source topics, or the `chosen` one (TOPIC/PARTITION).

    Raises
    ------
    TopicError
        There is no such topic or partition.
    """
    async with connected_admin(settings) as admin:
        existing = [
            TopicPartition(topic, number)
            for topic in settings.source_topics
            for number in range(await partition_count(admin, topic))
        ]
    selected = [tp for tp in existing if chosen in (None, f"{tp.topic}/{tp.partition}")]
    if not selected:
        example = f"{existing[0].topic}/{existing[0].partition}"
        raise TopicError(f"partition {chosen}: expected one such as {example}")
    return selected


async def check_rights(settings: Settings) -> list[str]:
    """Return which rights are lacking that a worker can do without.

    Raises
    ------
    RightsError
        It cannot do without some that are lacking.
    """
    async with connected_admin(settings) as admin:
        try:
            useful = await rights.missing(admin._client, rights.wanted(settings))
            await rights.check(admin._client, rights.needed(settings), settings.app_id)
        except KafkaError as error:
            raise BrokerError(f"the rights are not told: {error!r}") from error
    return useful


async def read_snapshots(
    settings: Settings, chosen: Sequence[TopicPartition], *, only_newest: bool = False
) -> AsyncGenerator[Found, None]:
    """Yield the stored snapshots, the newest of each partition first; each is open until the next.

    With `only_newest`, those before the newest undamaged one of a partition are not read.

    Raises
    ------
    InspectionError
        The store cannot be read.
    """
    store, _ = _store(settings)
    try:
        for tp in chosen:
            await store.open(tp, read_only=True)
            async with aclosing(store.load(tp)) as snapshots:
                async for stored in snapshots:
                    with stored.data:
                        yield (found := _found(tp, stored))
                    if only_newest and found.snapshot is not None:
                        break
    except (SnapshotError, KafkaError) as error:
        why = rights.reason(error) if isinstance(error, KafkaError) else error
        raise InspectionError(f"snapshots cannot be read: {why}") from error
    finally:
        await store.close()


async def earlier_epochs(settings: Settings, topic: str) -> dict[tuple[str, int], Epochs]:
    """Return the settings that the models of a topic's partitions had before those of now.

    By the newest snapshot of each; none where that has other settings than these.

    Raises
    ------
    InspectionError
        The store cannot be read.
    """
    if settings.snapshots == "off":
        return {}
    async with connected_admin(settings) as admin:
        n = await partition_count(admin, topic)
    every, found = [TopicPartition(topic, number) for number in range(n)], {}
    async for each in read_snapshots(settings, every, only_newest=True):
        snapshot = each.snapshot
        if snapshot is not None and snapshot.epochs and not changes(snapshot, settings):
            found[each.tp.topic, each.tp.partition] = snapshot.epochs
    return found


async def positions(settings: Settings, chosen: Sequence[TopicPartition]) -> list[Position]:
    """Return the group's positions in these partitions."""
    async with connected(_consumer(settings), settings) as consumer:
        consumer.assign(chosen)
        first = await consumer.beginning_offsets(chosen)
        end = await consumer.end_offsets(chosen)
        committed = await consumer._coordinator.fetch_committed_offsets(list(chosen))
    return [
        Position(
            tp,
            committed[tp].offset if tp in committed else None,
            recorded_start(committed.get(tp)),
            first[tp],
            end[tp],
        )
        for tp in chosen
    ]


def read_file(path: Path) -> Snapshot:
    """Read an exported snapshot.

    Raises
    ------
    InspectionError
        The file cannot be read, or holds no snapshot.
    """
    try:
        return Snapshot.from_bytes(files.read_file(path, files.LARGEST_MODEL))
    except OSError as error:
        raise InspectionError(f"file {path}: {error.strerror}") from error
    except StateError as error:
        raise InspectionError(f"file {path}: {error}") from error


def seed(
    snapshot: Snapshot, position: Position, offset: int | None, settings: Settings
) -> PartitionChange:
    """Return the change that continues a partition with an exported snapshot at `offset`.

    Without `offset`, the snapshot must be from this partition.

    Raises
    ------
    InspectionError
        The snapshot is from another partition and no offset is given, or it is outside the log.
    IncompatibleSnapshotError
        The snapshot was made with other settings.
    """
    tp = position.tp
    check_settings(snapshot, settings)
    if offset is None and (snapshot.topic, snapshot.partition) != tp:
        raise InspectionError(
            f"the snapshot is from {snapshot.topic}/{snapshot.partition}: expected --offset, "
            f"at which {tp.topic}/{tp.partition} continues with it"
        )
    start = snapshot.start if offset is None else offset
    offset = snapshot.next_offset if offset is None else offset
    _check_offset(position, offset)
    moved = replace(
        snapshot,
        topic=tp.topic,
        partition=tp.partition,
        start=start,
        next_offset=offset,
        topic_id=None,  # the next worker sets the id of this topic
    )
    return PartitionChange(tp, start, offset, moved)


def reset(position: Position, to: int | None) -> PartitionChange:
    """Return the change that starts a new model at `to`; None means where learning began.

    Raises
    ------
    InspectionError
        The offset is outside the log.
    """
    if to is None:
        to = max(position.first, position.start or 0)
    _check_offset(position, to)
    return PartitionChange(position.tp, to, to)


def forget(position: Position) -> PartitionChange:
    """Return the change that learns a partition again from its start, and emits only new output."""
    return PartitionChange(position.tp, position.start, None)


async def apply(settings: Settings, changes: Sequence[PartitionChange]) -> None:
    """Apply changes; all workers must be stopped.

    Raises
    ------
    InspectionError
        The group has members, or the store or the group's offsets cannot be written.
    """
    async with connected_admin(settings) as admin:
        await _check_idle(admin, settings.app_id)
    store, producers = _store(settings)
    try:
        for change in changes:
            if settings.uses_transactions:
                await producers.open(change.tp)
                await producers.fence_earlier_version(change.tp)
            await _apply(store, change)
        await _commit(settings, changes)
    except (SnapshotError, LostPartitionError, KafkaError) as error:
        raise InspectionError(
            f"not all changes were made: {rights.reason(error, 'Write')}; repeat the command"
        ) from error
    finally:
        await store.close()
        await producers.close()


async def _apply(store: SnapshotStore, change: PartitionChange) -> None:
    await store.open(change.tp)
    await store.discard(change.tp)
    if change.snapshot is not None:
        data = Extent.of(change.snapshot.to_bytes())
        await store.save(change.tp, change.snapshot.next_offset, data)


async def _commit(settings: Settings, changes: Sequence[PartitionChange]) -> None:
    """Commit where the partitions continue, and the initial model with which they begin."""
    chosen = [change.tp for change in changes]
    async with connected(_consumer(settings), settings) as consumer:
        consumer.assign(chosen)
        committed = await consumer._coordinator.fetch_committed_offsets(chosen)
        offsets = {
            change.tp: position
            for change in changes
            if (position := _position(change, committed.get(change.tp), settings)) is not None
        }
        if offsets:
            await consumer.commit(offsets)


def _position(
    change: PartitionChange, before: OffsetAndMetadata | None, settings: Settings
) -> OffsetAndMetadata | None:
    """Return the offset to commit; None if the group has committed none, and none is chosen."""
    model = initial_digest(settings)
    if change.offset is not None:
        metadata = start_metadata(change.start or 0, initial_model=model)
        return OffsetAndMetadata(change.offset, metadata)
    if before is None or change.start is None:
        return None
    topic_id = recorded_topic(before)
    return OffsetAndMetadata(before.offset, start_metadata(change.start, topic_id, model))


async def _check_idle(admin: AIOKafkaAdminClient, group: str) -> None:
    for answer in await admin.describe_consumer_groups([group]):
        for described in answer.groups:
            members = described[5]
            if members:
                raise InspectionError(
                    f"group {group} has {len(members)} members: stop the workers first"
                )


def _check_offset(position: Position, offset: int) -> None:
    if not position.first <= offset <= position.end:
        raise InspectionError(
            f"offset {offset}: expected one from {position.first} to {position.end}, "
            f"the range of {position.tp.topic}/{position.tp.partition}"
        )


def _store(settings: Settings) -> tuple[SnapshotStore, Producers]:
    # The caller opens the producers, only to write: opening one fences the partition's worker.
    producers = Producers(settings.app_id, producer_arguments(settings))
    return snapshot_store(settings, producers), producers


def _consumer(settings: Settings) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        **client_arguments(settings),
        group_id=settings.app_id,
        enable_auto_commit=False,
        isolation_level="read_committed",
    )


def _found(tp: TopicPartition, stored: StoredSnapshot) -> Found:
    try:
        snapshot, scorer, state = Snapshot.read(stored.data)
        successor = None if state is None else Snapshot.read(state)[0]
    except StateError as error:
        return Found(tp, stored, problem=str(error))
    return Found(tp, stored, snapshot, scorer, successor)


def describe(found: Found, now: float) -> dict[str, Any]:
    """Return a snapshot as plain data; `now` is in seconds since 1970."""
    data = {
        "topic": found.tp.topic,
        "partition": found.tp.partition,
        "next_offset": found.stored.next_offset,
        "age_seconds": round(max(0.0, now - found.stored.timestamp / 1000), 1),
        "bytes": found.stored.data.size,
        "where": found.stored.where,
        "problem": found.problem,
    }
    if found.snapshot is None:
        return data
    names = ("start", "records", "nodes", "fields", "version", "settings")
    epochs = [epoch._asdict() for epoch in found.snapshot.epochs]
    successor = found.successor and _values(found.successor, ("start", "records", "settings"))
    return data | _values(found.snapshot, names) | {"successor": successor, "epochs": epochs}


def _values(snapshot: Snapshot, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(snapshot, name) for name in names}


def describe_entity(found: Found, entity: str) -> dict[str, Any] | None:
    """Return what a snapshot knows of an entity as plain data; None if it does not know it.

    Raises
    ------
    InspectionError
        The snapshot's scorer cannot be read.
    """
    snapshot = found.snapshot
    if snapshot is None or found.scorer is None:
        return None
    try:
        scorer = StreamScorer.from_bytes(found.scorer)
    except StateError as error:
        raise InspectionError(f"snapshot {found.stored.where}: {error}") from error
    profile = scorer.entity_profile(entity)
    if profile is None:
        return None
    place = {"topic": found.tp.topic, "partition": found.tp.partition}
    next_offset = {"next_offset": found.stored.next_offset}
    return place | next_offset | {"entity": entity} | profile_data(profile, snapshot.fields or ())
