"""Partitions that another worker has taken, whatever is under way here."""

import asyncio

from memory_worker import FIRST, SECOND, GatedStore, MemoryWorker, turns, until

from faust_oslrau.app.kafka.transactions import LostPartitionError
from faust_oslrau.app.snapshots import SnapshotError


async def test_a_partition_lost_amid_a_batch_is_given_up_and_the_others_go_on(worker, broker):
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
    assert broker.scores[SECOND] == broker.clean(SECOND)
    assert worker.crashes == []


async def test_a_lost_partition_that_stays_assigned_is_opened_again(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, session_timeout=0.01) as worker:
        partition = await worker.first_read(100)
        assert await worker.assignment.commit([partition])
        worker.delivery.lost = {FIRST}
        await worker.read(FIRST, 100)
        worker.delivery.lost = set()
        await until(lambda: worker.held.get(FIRST, partition) is not partition)
        await until(lambda: worker.consumer.positions[FIRST] == 0)  # no snapshot: from the start
        await worker.read(FIRST)
        assert broker.scores[FIRST] == broker.clean(FIRST)


async def test_a_lost_partition_that_is_assigned_elsewhere_is_not_opened_again(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, session_timeout=0.02) as worker:
        await worker.assign(FIRST, SECOND)
        worker.delivery.lost = {FIRST}
        await worker.read(FIRST, 100)
        await worker.assignment.revoked(60)
        await worker.assign(SECOND)
        await asyncio.sleep(0.04)  # after which it would be opened again
        assert set(worker.held) == {SECOND}


async def test_a_partition_lost_while_its_snapshot_waits_for_the_batch_saves_nothing(worker):
    partition = await worker.first_read(100)
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


async def test_a_partition_found_lost_when_its_snapshot_is_saved_is_given_up(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, GatedStore) as worker:
        partition = await worker.first_read(100)
        worker.store.error = LostPartitionError("opened elsewhere")
        worker.store.gate.set()
        await worker.assignment.save_snapshot(partition, now=True)
        assert worker.held == {}
        assert not worker.is_shown(FIRST)


async def test_the_loss_of_a_former_state_does_not_touch_the_one_that_replaced_it(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, GatedStore) as worker:
        partition = await worker.first_read(100)
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


async def test_a_snapshot_that_cannot_be_written_is_counted_and_the_work_goes_on(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, GatedStore) as worker:
        partition = await worker.first_read(100)
        worker.store.error = SnapshotError("no space")
        worker.store.gate.set()
        await worker.assignment.save_snapshot(partition, now=True)
        place = {"topic": "features", "partition": "0"}
        assert worker.metric("snapshot_failures_total", kind="save", **place) == 1
        await worker.read(FIRST)
        assert broker.scores[FIRST] == broker.clean(FIRST)
