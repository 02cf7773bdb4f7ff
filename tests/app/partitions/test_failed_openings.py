"""Openings that fail, wait for output partitions, or are given up."""

import asyncio

import pytest
from aiokafka import OffsetAndMetadata
from aiokafka.errors import KafkaConnectionError
from memory_worker import FIRST, SECOND, MemoryWorker, turns, until

from faust_oslrau.app.kafka.positions import start_metadata
from faust_oslrau.app.kafka.transactions import LostPartitionError
from faust_oslrau.app.snapshots import FolderStore, SnapshotError


class _FailingStore(FolderStore):
    """Raises the test's errors, one at each opening and one at each look for snapshots."""

    def __init__(self, *place):
        super().__init__(*place)
        self.open_errors, self.load_errors = [], []

    async def open(self, tp):
        if self.open_errors:
            raise self.open_errors.pop()
        await super().open(tp)

    async def load(self, tp):
        if self.load_errors:
            raise self.load_errors.pop()
        async for stored in super().load(tp):
            yield stored


async def test_openings_that_fail_are_counted_and_tried_again_and_told_once_if_alike(
    tmp_path, broker, caplog
):
    async with MemoryWorker(tmp_path, broker, _FailingStore) as worker:
        worker.store.open_errors = [SnapshotError(f"no bucket {i}") for i in range(3)]
        worker.store.open_errors.append(LostPartitionError("opened elsewhere"))
        await worker.assign(FIRST)
        assert worker.metric("failed_openings_total") == 4
        assert worker.consumer.positions == {FIRST: 0}
        told = [each for each in caplog.messages if "waiting for the partitions'" in each]
        assert [each.partition("snapshots: ")[2] for each in told] == [
            "LostPartitionError('opened elsewhere')", "SnapshotError('no bucket 2')",
        ]  # fmt: skip


async def test_why_nothing_is_read_is_told(worker, caplog):
    caplog.set_level("INFO")
    worker.assignment.assigned(frozenset())
    told = "reading nothing: there are more workers than partitions"
    await until(lambda: told in caplog.messages)


async def test_a_parked_state_survives_an_opening_that_fails(worker, broker):
    partition = await worker.first_read(100)
    await worker.assignment.revoked(60)
    broker.is_away = True
    worker.assignment.assigned(frozenset({FIRST}))
    await until(lambda: worker.metric("failed_openings_total") > 1)
    broker.is_away = False
    assert await worker.assign(FIRST) == [partition]


async def test_where_the_beginning_cannot_be_recorded_the_opening_is_tried_again(worker, broker):
    partition = await worker.first_read(100)
    await worker.assignment.revoked(60)
    commit, failures = worker.consumer.commit_offsets, [KafkaConnectionError()]

    async def commit_offsets(offsets):
        if failures:
            raise failures.pop()
        await commit(offsets)

    worker.consumer.commit_offsets = commit_offsets
    first, second = await worker.assign(FIRST, SECOND)
    assert worker.metric("failed_openings_total") == 1
    assert (first, second.start, broker.committed(SECOND)) == (partition, 0, 0)


async def test_a_parked_state_survives_snapshots_that_cannot_be_read(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, _FailingStore) as worker:
        partition = await worker.first_read(100)
        await worker.assignment.revoked(60)
        # Another worker has continued, so that there may be a newer snapshot.
        await worker.consumer.commit_offsets({FIRST: OffsetAndMetadata(150, start_metadata(0))})
        worker.store.load_errors = [SnapshotError("no answer")]
        assert await worker.assign(FIRST) == [partition]
        await worker.read(FIRST)
        assert broker.offsets(FIRST) == [*range(100), *range(150, 300)]


async def test_partitions_taken_away_while_they_are_opened_are_not_held(worker, broker):
    broker.answering.clear()
    worker.assignment.assigned(frozenset({FIRST, SECOND}))
    await turns()
    assert await worker.assignment.revoked(60)
    broker.answering.set()
    await turns()
    assert (worker.held, worker.consumer.positions) == ({}, {})
    assert not worker.assignment.is_open
    await worker.assign(SECOND)
    assert worker.consumer.positions == {SECOND: 0}


@pytest.mark.parametrize("passed", [0, 20])
async def test_a_new_assignment_ends_the_opening_of_the_one_before(passed, worker, broker, recwarn):
    broker.answering.clear()
    worker.assignment.assigned(frozenset({FIRST}))
    await turns(passed)
    worker.assignment.assigned(frozenset({SECOND}))
    broker.answering.set()
    await until(lambda: worker.assignment.is_open)
    await turns()
    assert worker.consumer.positions == {SECOND: 0}
    assert recwarn.list == []  # of something that was never awaited


async def test_waiting_for_outputs_ends_when_the_partition_goes_elsewhere(worker):
    worker.topics.granted = 1
    await worker.assign(FIRST, SECOND)
    await worker.assignment.revoked(60)
    await worker.assign(FIRST)
    assert worker.metric("waiting_partitions") == 0
    worker.topics.granted = 2
    await asyncio.sleep(0.03)  # several looks
    assert set(worker.held) == {FIRST}


async def test_a_worker_waits_for_a_broker_that_does_not_know_the_topic_yet(worker, broker):
    known = broker.ids.pop(FIRST.topic)
    worker.assignment.assigned(frozenset({FIRST}))
    await until(lambda: worker.metric("failed_openings_total") > 1)
    broker.ids[FIRST.topic] = known
    (partition,) = await worker.assign(FIRST)
    assert partition.topic_id == known
    assert worker.crashes == []
