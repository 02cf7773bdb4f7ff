"""Partitions that are taken away: what is finished, committed, saved and parked."""

import asyncio
import threading

from memory_worker import FIRST, SECOND, GatedStore, MemoryWorker, turns, until

from faust_oslrau.app import pace
from faust_oslrau.app.partitions import assignment
from faust_oslrau.app.pipeline import PartitionPipeline


async def test_revocation_finishes_the_work_drops_what_waits_and_parks_the_state(worker, broker):
    (partition,) = await worker.assign(FIRST)
    worker.delivery.acknowledging.clear()
    await worker.begin(FIRST, 100)
    await worker.assignment.handle(worker.consumer.fetch(FIRST, 100))
    revoked = asyncio.create_task(worker.assignment.revoked(60))
    await turns()
    assert not revoked.done() and worker.held == {}
    worker.delivery.acknowledging.set()
    assert await revoked
    assert broker.offsets(FIRST) == list(range(100))
    assert broker.committed(FIRST) == 100
    assert await worker.snapshots(FIRST) == [100]
    assert await worker.assign(FIRST) == [partition]
    await worker.read(FIRST)
    assert broker.scores[FIRST] == broker.clean(FIRST)


async def test_work_without_acknowledgement_ends_in_bounded_time_and_is_repeated(worker, broker):
    partition = await worker.first_read(100)
    worker.delivery.acknowledging.clear()
    await worker.begin(FIRST, 100)
    assert not await worker.assignment.revoked(0.01)
    assert not worker.is_shown(FIRST)  # its state is of no use any more
    worker.delivery.acknowledging.set()
    (again,) = await worker.assign(FIRST)
    assert again is not partition
    await worker.read(FIRST)
    assert broker.scores[FIRST] == broker.clean(FIRST)


async def test_a_batch_that_outlives_the_revocation_is_not_saved(
    worker, broker, monkeypatch, caplog
):
    started, going_on = threading.Event(), threading.Event()
    process = PartitionPipeline.process

    def slow(pipeline, records):
        started.set()
        going_on.wait()
        return process(pipeline, records)

    partition = await worker.first_read(100)
    monkeypatch.setattr(pace, "SHORT_BLOCK_SECONDS", 0.0)
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
    assert broker.scores[FIRST] == broker.clean(FIRST)
    assert worker.crashes == []


async def test_without_a_broker_a_revocation_saves_nothing_but_parks_the_state(worker, broker):
    partition = await worker.first_read(100)
    broker.is_away = True
    assert not await worker.assignment.revoked(60)
    assert await worker.snapshots(FIRST) == []
    broker.is_away = False
    assert await worker.assign(FIRST) == [partition]
    assert await worker.assignment.commit([partition])
    assert broker.committed(FIRST) == 100


async def test_last_snapshots_that_take_long_are_given_up(tmp_path, broker, monkeypatch, caplog):
    monkeypatch.setattr(assignment, "_LAST_SNAPSHOTS_SECONDS", 0.01)
    async with MemoryWorker(tmp_path, broker, GatedStore) as worker:
        await worker.first_read(100)
        assert await worker.assignment.revoked(60)
        assert "1 final snapshots were not saved in time" in caplog.messages
        assert await worker.snapshots(FIRST) == []


async def test_the_state_of_a_partition_that_went_elsewhere_is_dropped(worker):
    partition = await worker.first_read(100)
    await worker.assignment.revoked(60)
    assert worker.is_shown(FIRST)  # it may come back
    await worker.assign(SECOND)
    assert not worker.is_shown(FIRST)
    await worker.assignment.revoked(60)
    (again, _) = await worker.assign(FIRST, SECOND)
    assert again is not partition
    assert again.next_offset == 100  # from its snapshot
    await worker.store.discard(FIRST)
    await worker.assignment.revoked(60)
    assert await worker.snapshots(FIRST) == []  # there was nothing new to save
