"""Partitions from assignment to revocation, with all that may happen in between."""

from __future__ import annotations

import asyncio
import threading

import pytest
from aiokafka import OffsetAndMetadata
from aiokafka.errors import KafkaConnectionError
from memory_worker import (
    FIRST,
    SECOND,
    MemoryBroker,
    MemoryWorker,
    clean_scores,
    in_loop,
    turns,
    until,
    values,
)

from faust_oslrau.app.kafka.batches import RecordBatch
from faust_oslrau.app.kafka.positions import recorded_start, recorded_topic, start_metadata
from faust_oslrau.app.kafka.transactions import LostPartitionError
from faust_oslrau.app.partitions import assignment
from faust_oslrau.app.partitions.resume import LostHistoryError
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.snapshots import FolderStore, SnapshotError

_LOG = values(300)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Retries come at once."""
    monkeypatch.setattr(assignment, "_RETRY_SECONDS", 0.005)
    monkeypatch.setattr(assignment, "_TOPICS_SECONDS", 0.005)


@pytest.fixture
def broker():
    """A broker with a topic of two partitions."""
    return MemoryBroker(_LOG, values(100, seed=1))


class _GatedStore(FolderStore):
    """Saves when the test opens the gate, or fails with the test's error."""

    def __init__(self, *place):
        super().__init__(*place)
        self.gate = asyncio.Event()
        self.error = None
        self.waiting = 0

    async def save(self, tp, next_offset, data):
        self.waiting += 1
        await self.gate.wait()
        self.waiting -= 1
        if self.error is not None:
            raise self.error
        await super().save(tp, next_offset, data)


# Assignment and work


@in_loop
async def test_a_new_deployment_records_where_it_begins_and_reads_from_there(tmp_path, broker):
    broker.delete_before(FIRST, 20)
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST, SECOND)
        assert worker.consumer.positions == {FIRST: 20, SECOND: 0}
        assert {tp: broker.committed(tp) for tp in broker.group} == {FIRST: 20, SECOND: 0}
        assert recorded_start(broker.group[FIRST].metadata) == 20
        assert recorded_topic(broker.group[FIRST].metadata) == "id-1"
        assert worker.metric("assigned_partitions") == 2


@in_loop
async def test_nothing_is_read_before_the_beginning_is_recorded(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        commit, recording = worker.consumer.commit_offsets, asyncio.Event()

        async def record(offsets):
            await recording.wait()
            await commit(offsets)

        worker.consumer.commit_offsets = record
        worker.assignment.assigned(frozenset({FIRST}))
        await until(lambda: FIRST in worker.held)
        await turns()
        assert (worker.consumer.positions, worker.assignment.is_open) == ({}, False)
        recording.set()
        await until(lambda: worker.assignment.is_open)
        assert worker.consumer.positions == {FIRST: 0}


@in_loop
async def test_batches_of_all_partitions_are_scored_and_committed(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST, SECOND)
        for most in (100, 200):
            await worker.read(FIRST, most)
        await worker.read(SECOND)
        assert broker.scores[FIRST] == clean_scores(FIRST, _LOG)
        assert broker.scores[SECOND] == clean_scores(SECOND, broker.logs[SECOND])
        assert await worker.assignment.commit(worker.held.values())
        assert (broker.committed(FIRST), broker.committed(SECOND)) == (300, 100)


@in_loop
async def test_a_partition_whose_outputs_wait_does_not_hold_up_the_others(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST, SECOND)
        worker.delivery.acknowledging.clear()
        await worker.begin(FIRST)
        await worker.begin(SECOND)
        assert worker.delivery.waiting == 2
        worker.delivery.acknowledging.set()
        await until(lambda: len(broker.scores[FIRST]) == 300)


@in_loop
async def test_work_that_piles_up_makes_the_reader_wait(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST)
        worker.delivery.acknowledging.clear()
        for _ in range(16):
            await worker.assignment.handle(worker.consumer.fetch(FIRST, 10))
        last = asyncio.create_task(worker.assignment.handle(worker.consumer.fetch(FIRST, 10)))
        await turns()
        assert not last.done()
        worker.delivery.acknowledging.set()
        await last


@in_loop
async def test_a_batch_of_a_partition_that_is_not_held_is_left(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST)
        worker.consumer.positions[SECOND] = 0
        await worker.assignment.handle(worker.consumer.fetch(SECOND))
        await worker.read(FIRST)
        assert broker.offsets(SECOND) == []
        assert worker.crashes == []


@in_loop
async def test_after_a_dropped_batch_the_partition_is_read_from_where_its_state_is(
    tmp_path, broker
):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST)
        await worker.read(FIRST, 50)
        worker.consumer.fetch(FIRST, 50)  # dropped
        await worker.read(FIRST, 50)
        assert worker.consumer.positions[FIRST] == 50
        await worker.read(FIRST)
        assert broker.scores[FIRST] == clean_scores(FIRST, _LOG)


@in_loop
async def test_when_the_flow_resumes_all_partitions_are_read_from_where_they_are(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST, SECOND)
        await worker.read(FIRST, 50)
        worker.consumer.positions.clear()
        worker.assignment.resumed()
        await until(lambda: worker.consumer.positions == {FIRST: 50, SECOND: 0})


@in_loop
async def test_an_error_that_nobody_expected_ends_the_app(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST)
        batch = worker.consumer.fetch(FIRST, 2)
        await worker.assignment.handle(RecordBatch(0, batch.records[::-1]))
        await until(lambda: worker.crashes)
        assert "expected offset" in str(worker.crashes[0])


# Commits


@in_loop
async def test_a_commit_that_fails_is_made_good_later(tmp_path, broker, caplog):
    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 50)
        broker.is_away = True
        assert not await worker.assignment.commit([partition])
        assert "could not commit, next try later" in caplog.text
        broker.is_away = False
        assert await worker.assignment.commit([partition])
        assert broker.committed(FIRST) == 50


@in_loop
async def test_what_is_committed_is_not_committed_again(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 50)
        assert await worker.assignment.commit([partition])
        broker.group.clear()
        assert await worker.assignment.commit([partition])
        assert broker.group == {}


# Revocation


@in_loop
async def test_revocation_finishes_the_work_commits_saves_and_lets_the_state_come_back(
    tmp_path, broker
):
    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        worker.delivery.acknowledging.clear()
        await worker.begin(FIRST, 100)
        revoked = asyncio.create_task(worker.assignment.revoked(60))
        await turns()
        assert not revoked.done() and worker.held == {}
        worker.delivery.acknowledging.set()
        assert await revoked
        assert broker.committed(FIRST) == 100
        assert await worker.snapshots(FIRST) == [100]
        assert await worker.assign(FIRST) == [partition]
        await worker.read(FIRST)
        assert broker.scores[FIRST] == clean_scores(FIRST, _LOG)


@in_loop
async def test_batches_that_wait_at_a_revocation_are_left_to_whoever_is_next(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST)
        worker.delivery.acknowledging.clear()
        await worker.begin(FIRST, 100)
        await worker.assignment.handle(worker.consumer.fetch(FIRST, 100))
        revoked = asyncio.create_task(worker.assignment.revoked(60))
        await turns()
        worker.delivery.acknowledging.set()
        assert await revoked
        assert broker.offsets(FIRST) == list(range(100))
        assert broker.committed(FIRST) == 100


@in_loop
async def test_work_that_nobody_acknowledges_ends_in_bounded_time_and_is_done_again(
    tmp_path, broker
):
    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        worker.delivery.acknowledging.clear()
        await worker.begin(FIRST, 100)
        assert not await worker.assignment.revoked(0.01)
        assert not worker.is_shown(FIRST)  # its state is of no use any more
        worker.delivery.acknowledging.set()
        (again,) = await worker.assign(FIRST)
        assert again is not partition
        await worker.read(FIRST)
        assert broker.scores[FIRST] == clean_scores(FIRST, _LOG)


@in_loop
async def test_a_batch_that_outlives_the_revocation_in_its_thread_is_in_no_snapshot(
    tmp_path, broker, monkeypatch, caplog
):
    started, going_on = threading.Event(), threading.Event()
    process = PartitionPipeline.process

    def slow(pipeline, records):
        started.set()
        going_on.wait()
        return process(pipeline, records)

    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        monkeypatch.setattr(PartitionPipeline, "process", slow)
        await worker.assignment.handle(worker.consumer.fetch(FIRST, 100))
        await until(started.is_set)
        revoked = asyncio.create_task(worker.assignment.revoked(0.01))
        await until(lambda: "not acknowledged in time" in caplog.text)
        await turns()
        going_on.set()
        assert not await revoked
        assert await worker.snapshots(FIRST) == []
        (again,) = await worker.assign(FIRST)
        assert again is not partition
        await worker.read(FIRST)
        assert broker.scores[FIRST] == clean_scores(FIRST, _LOG)
        assert worker.crashes == []


@in_loop
async def test_without_a_broker_a_revocation_saves_nothing_but_parks_the_state(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        broker.is_away = True
        assert not await worker.assignment.revoked(60)
        assert await worker.snapshots(FIRST) == []
        broker.is_away = False
        assert await worker.assign(FIRST) == [partition]
        assert await worker.assignment.commit([partition])
        assert broker.committed(FIRST) == 100


@in_loop
async def test_last_snapshots_that_take_too_long_are_left(tmp_path, broker, monkeypatch, caplog):
    monkeypatch.setattr(assignment, "_LAST_SNAPSHOTS_SECONDS", 0.01)
    async with MemoryWorker(tmp_path, broker, _GatedStore) as worker:
        await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        assert await worker.assignment.revoked(60)
        assert "1 last snapshots not saved in time" in caplog.messages
        assert await worker.snapshots(FIRST) == []


@in_loop
async def test_the_state_of_a_partition_that_went_elsewhere_is_dropped(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        await worker.assignment.revoked(60)
        assert worker.is_shown(FIRST)  # it may come back
        await worker.assign(SECOND)
        assert not worker.is_shown(FIRST)
        await worker.assignment.revoked(60)
        (again, _) = await worker.assign(FIRST, SECOND)
        assert again is not partition
        assert again.next_offset == 100  # from its snapshot


@in_loop
async def test_another_worker_goes_on_from_the_snapshot(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        assert await worker.assignment.stop(60)
    async with MemoryWorker(tmp_path, broker) as heir:
        (partition,) = await heir.assign(FIRST)
        assert (partition.next_offset, heir.consumer.positions[FIRST]) == (100, 100)
        await heir.read(FIRST)
        assert broker.scores[FIRST] == clean_scores(FIRST, _LOG)


# Openings that fail, wait or are given up


class _FailingStore(FolderStore):
    """Raises the test's errors, one at each opening and one at each look for snapshots."""

    def __init__(self, *place):
        super().__init__(*place)
        self.open_errors = [SnapshotError("no space"), LostPartitionError("opened elsewhere")]
        self.load_errors = []

    async def open(self, tp):
        if self.open_errors:
            raise self.open_errors.pop()
        await super().open(tp)

    async def load(self, tp):
        if self.load_errors:
            raise self.load_errors.pop()
        async for stored in super().load(tp):
            yield stored


@in_loop
async def test_openings_that_fail_are_counted_and_tried_again(tmp_path, broker, caplog):
    async with MemoryWorker(tmp_path, broker, _FailingStore) as worker:
        await worker.assign(FIRST)
        assert worker.metric("failed_openings_total") == 2
        assert "waiting for the partitions' offsets and snapshots" in caplog.text
        assert worker.consumer.positions == {FIRST: 0}


@in_loop
async def test_a_broker_that_is_away_is_waited_for(tmp_path, broker):
    broker.is_away = True
    async with MemoryWorker(tmp_path, broker) as worker:
        worker.assignment.assigned(frozenset({FIRST}))
        await until(lambda: worker.metric("failed_openings_total") > 2)
        assert not worker.assignment.is_open
        broker.is_away = False
        await until(lambda: worker.assignment.is_open)
        assert worker.consumer.positions == {FIRST: 0}


@in_loop
async def test_a_parked_state_survives_an_opening_that_fails(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        await worker.assignment.revoked(60)
        broker.is_away = True
        worker.assignment.assigned(frozenset({FIRST}))
        await until(lambda: worker.metric("failed_openings_total") > 1)
        broker.is_away = False
        assert await worker.assign(FIRST) == [partition]


@in_loop
async def test_where_the_beginning_cannot_be_recorded_the_opening_is_tried_again(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        await worker.assignment.revoked(60)
        commit, failures = worker.consumer.commit_offsets, [KafkaConnectionError()]

        async def commit_offsets(offsets):
            if failures:
                raise failures.pop()
            await commit(offsets)

        worker.consumer.commit_offsets = commit_offsets
        first, second = await worker.assign(FIRST, SECOND)
        assert worker.metric("failed_openings_total") == 1
        assert (first, second.committed, broker.committed(SECOND)) == (partition, 0, 0)


@in_loop
async def test_a_parked_state_survives_snapshots_that_cannot_be_read(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, _FailingStore) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        await worker.assignment.revoked(60)
        # Another worker has continued, so that there may be a newer snapshot.
        await worker.consumer.commit_offsets({FIRST: OffsetAndMetadata(150, start_metadata(0))})
        worker.store.load_errors = [SnapshotError("no answer")]
        assert await worker.assign(FIRST) == [partition]
        await worker.read(FIRST)
        assert broker.offsets(FIRST) == [*range(100), *range(150, 300)]


@in_loop
async def test_partitions_taken_away_while_they_are_opened_are_not_held(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
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


@in_loop
async def test_a_new_assignment_ends_the_opening_of_the_one_before(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        broker.answering.clear()
        worker.assignment.assigned(frozenset({FIRST}))
        await turns()
        worker.assignment.assigned(frozenset({SECOND}))
        broker.answering.set()
        await until(lambda: worker.assignment.is_open)
        await turns()
        assert worker.consumer.positions == {SECOND: 0}


@in_loop
async def test_history_that_is_lost_ends_the_app(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        await worker.assignment.revoked(60)
        broker.delete_before(FIRST, 200)
        await worker.assign(FIRST)
        assert isinstance(worker.crashes[0], LostHistoryError)
        assert not worker.assignment.is_open


@in_loop
async def test_partitions_whose_outputs_have_no_place_wait_for_it(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        worker.topics.granted = 1
        await worker.assign(FIRST, SECOND)
        assert set(worker.held) == {FIRST}
        assert worker.metric("waiting_partitions") == 1
        worker.topics.granted = 2
        await until(lambda: SECOND in worker.consumer.positions)
        assert worker.metric("waiting_partitions") == 0
        await worker.read(SECOND)
        assert broker.scores[SECOND] == clean_scores(SECOND, broker.logs[SECOND])


@in_loop
async def test_waiting_for_outputs_ends_when_the_partition_goes_elsewhere(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        worker.topics.granted = 1
        await worker.assign(FIRST, SECOND)
        await worker.assignment.revoked(60)
        await worker.assign(FIRST)
        assert worker.metric("waiting_partitions") == 0
        worker.topics.granted = 2
        await asyncio.sleep(0.03)  # several looks
        assert set(worker.held) == {FIRST}


# Lost partitions


@in_loop
async def test_a_partition_lost_in_the_middle_of_a_batch_is_given_up_and_the_others_go_on(
    tmp_path, broker
):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST, SECOND)
        worker.delivery.acknowledging.clear()
        await worker.begin(FIRST, 100)
        await worker.assignment.handle(worker.consumer.fetch(FIRST, 100))  # waits for its turn
        worker.delivery.lost = {FIRST}
        worker.delivery.acknowledging.set()
        await until(lambda: FIRST not in worker.held)
        assert not worker.is_shown(FIRST)
        await worker.read(SECOND)
        assert broker.offsets(FIRST) == []
        assert broker.scores[SECOND] == clean_scores(SECOND, broker.logs[SECOND])
        assert worker.crashes == []


@in_loop
async def test_a_lost_partition_that_the_group_left_here_is_opened_again(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, session_timeout=0.01) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        assert await worker.assignment.commit([partition])
        worker.delivery.lost = {FIRST}
        await worker.read(FIRST, 100)
        worker.delivery.lost = set()
        await until(lambda: worker.held.get(FIRST, partition) is not partition)
        await until(lambda: worker.consumer.positions[FIRST] == 0)  # no snapshot: from the start
        await worker.read(FIRST)
        assert broker.scores[FIRST] == clean_scores(FIRST, _LOG)


@in_loop
async def test_a_lost_partition_that_the_group_gave_to_another_is_left_to_it(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, session_timeout=0.02) as worker:
        await worker.assign(FIRST, SECOND)
        worker.delivery.lost = {FIRST}
        await worker.read(FIRST, 100)
        await worker.assignment.revoked(60)
        await worker.assign(SECOND)
        await asyncio.sleep(0.04)  # after which it would be opened again
        assert set(worker.held) == {SECOND}


@in_loop
async def test_a_partition_lost_while_its_snapshot_waits_for_the_batch_saves_nothing(
    tmp_path, broker
):
    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        worker.delivery.acknowledging.clear()
        await worker.begin(FIRST, 100)
        saving = asyncio.create_task(worker.assignment.save_snapshot(partition, now=True))
        await turns()
        assert not saving.done()
        worker.delivery.lost = {FIRST}
        worker.delivery.acknowledging.set()
        await saving
        assert worker.held == {}
        assert await worker.snapshots(FIRST) == []  # its state is beyond what is acknowledged


@in_loop
async def test_a_partition_that_turns_out_lost_when_its_snapshot_is_saved_is_given_up(
    tmp_path, broker
):
    async with MemoryWorker(tmp_path, broker, _GatedStore) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        worker.store.error = LostPartitionError("opened elsewhere")
        worker.store.gate.set()
        await worker.assignment.save_snapshot(partition, now=True)
        assert worker.held == {}
        assert not worker.is_shown(FIRST)


@in_loop
async def test_the_loss_of_a_former_state_does_not_touch_the_one_that_replaced_it(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, _GatedStore) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        saving = asyncio.create_task(worker.assignment.save_snapshot(partition, now=True))
        await until(lambda: worker.store.waiting)
        worker.delivery.acknowledging.clear()
        await worker.begin(FIRST, 100)
        assert not await worker.assignment.revoked(0.01)
        (again,) = await worker.assign(FIRST)
        worker.store.error = LostPartitionError("it has been revoked")
        worker.store.gate.set()
        await saving
        assert worker.held == {FIRST: again}
        assert worker.is_shown(FIRST)


@in_loop
async def test_a_snapshot_that_cannot_be_written_is_counted_and_the_work_goes_on(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, _GatedStore) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        worker.store.error = SnapshotError("no space")
        worker.store.gate.set()
        await worker.assignment.save_snapshot(partition, now=True)
        place = {"topic": "features", "partition": "0"}
        assert worker.metric("snapshot_failures_total", kind="save", **place) == 1
        await worker.read(FIRST)
        assert broker.scores[FIRST] == clean_scores(FIRST, _LOG)


@in_loop
async def test_without_snapshots_nothing_is_saved(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, snapshots="off") as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        await worker.assignment.save_snapshot(partition, now=True)
        assert await worker.snapshots(FIRST) == []


# Logs that change under the worker


@in_loop
async def test_retention_that_overtakes_the_worker_ends_the_app(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        broker.delete_before(FIRST, 200)
        await worker.read(FIRST)
        await until(lambda: worker.crashes)
        assert "the log begins at 200" in str(worker.crashes[0])
        assert broker.offsets(FIRST) == list(range(100))


@in_loop
async def test_a_worker_told_to_continue_passes_over_what_retention_deleted(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, lost_history="continue") as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        broker.delete_before(FIRST, 200)
        await worker.read(FIRST)
        await until(lambda: worker.consumer.positions[FIRST] == 200)
        assert worker.held[FIRST] is partition
        await worker.read(FIRST)
        assert broker.offsets(FIRST) == [*range(100), *range(200, 300)]
        assert partition.missing == 100


@in_loop
async def test_a_gap_is_read_again_while_no_broker_says_where_the_log_begins(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker) as worker:
        (partition,) = await worker.assign(FIRST)
        await worker.read(FIRST, 100)
        batch = worker.consumer.fetch(FIRST, 50)
        gap = RecordBatch(batch.position, batch.records[10:])
        broker.is_away = True
        await worker.assignment.handle(gap)
        await until(lambda: worker.consumer.positions[FIRST] == 100)
        assert partition.next_offset == 100
        broker.is_away = False
        await worker.assignment.handle(gap)  # offsets that were never records
        await until(lambda: partition.next_offset == 150)
        assert partition.missing == 10
