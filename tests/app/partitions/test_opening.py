"""The state from which a partition continues, found in files that a real pipeline wrote."""

from dataclasses import replace
from itertools import product

import pytest
from aiokafka import OffsetAndMetadata
from memory_worker import FIRST, SECOND, SETTINGS, MemoryWorker, records, values

from faust_oslrau.app.kafka.positions import start_metadata
from faust_oslrau.app.partitions.resume import LostHistoryError, OtherModelError
from faust_oslrau.app.pipeline import (
    IncompatibleSnapshotError,
    PartitionPipeline,
    Snapshot,
    initial_digest,
)
from faust_oslrau.learner.state import Extent

_LOG = values(300)
_PLACE = {"topic": "features", "partition": "0"}


def _snapshot(next_offset, start=0, tp=FIRST):
    """Return the bytes of a state that has learned a log from `start` up to an offset."""
    pipeline = PartitionPipeline(*tp, SETTINGS)
    pipeline.process(records(tp, _LOG[start:next_offset], start))
    return pipeline.snapshot(start, next_offset, "id-1").to_bytes()


async def go_on(worker, saved):
    """Let the partition go on from the snapshots at these offsets; it was scored up to 150."""
    await worker.store.open(FIRST)
    for offset, data in saved.items():
        await worker.store.save(FIRST, offset, Extent.of(data))
    worker.broker.group[FIRST] = OffsetAndMetadata(150, start_metadata(0, "id-1"))
    return await worker.assign(FIRST)


def damaged(worker):
    return worker.metric("snapshot_failures_total", kind="damaged", **_PLACE)


# From the store


async def test_the_newest_snapshot_goes_on_to_the_same_scores(worker, broker):
    (partition,) = await go_on(worker, {100: _snapshot(100), 200: _snapshot(200)})
    assert (partition.start, partition.next_offset) == (0, 200)
    assert worker.metric("snapshot_bytes", **_PLACE) == len(_snapshot(200))
    assert worker.metric("stage_seconds_count", stage="restore", **_PLACE) == 1
    await worker.read(FIRST)
    assert broker.scores[FIRST] == broker.clean(FIRST)[200:]


async def test_without_a_snapshot_a_log_is_learned_again_with_the_same_initial_model_only(
    tmp_path, broker
):
    """With other scores of the old records, those of the new ones would be others, too."""
    models = {None: None}
    for n in (100, 120):
        path = tmp_path / str(n)
        path.write_bytes(_snapshot(n))
        models[initial_digest(replace(SETTINGS, initial_model=str(path)))] = str(path)
    for recorded, now in product(models, repeat=2):
        broker.group[FIRST] = OffsetAndMetadata(150, start_metadata(0, "id-1", recorded))
        async with MemoryWorker(tmp_path / "none", broker, initial_model=models[now]) as worker:
            partitions = await worker.assign(FIRST)
        if now == recorded:
            assert [(p.start, p.next_offset, p.emit_from) for p in partitions] == [(0, 0, 150)]
            continue
        (error,) = worker.crashes
        assert isinstance(error, OtherModelError)
        assert "features/0 began with initial_model = " in str(error)
        broker.group.clear()
        async with MemoryWorker(tmp_path / "none", broker, initial_model=models[now]) as anew:
            assert [partition.start for partition in await anew.assign(FIRST)] == [0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:400] + b"?" + data[401:],
        lambda data: b"",
        lambda data: _snapshot(200, tp=SECOND),
        lambda data: replace(Snapshot.from_bytes(data), fields=("a", "b", "c")).to_bytes(),
    ],
    ids=["cut off", "changed", "empty", "of another partition", "crafted"],
)
async def test_a_damaged_snapshot_gives_way_to_the_older_one(damage, worker, caplog):
    (partition,) = await go_on(worker, {100: _snapshot(100), 200: damage(_snapshot(200))})
    assert partition.next_offset == 100
    assert damaged(worker) == 1
    assert "is damaged: " in caplog.text
    # so that the next one does not replace the whole one
    assert await worker.snapshots(FIRST) == [100]


async def test_a_snapshot_of_another_version_is_refused_and_kept(worker):
    data = _snapshot(200)
    await go_on(worker, {200: data[:7] + b"\x09" + data[8:]})
    told = "of features/0 at offset 200 is from another version, .* version 1, got 9: .* --forget"
    with pytest.raises(IncompatibleSnapshotError, match=told):
        raise worker.crashes[0]
    assert await worker.snapshots(FIRST) == [200]


async def test_where_all_snapshots_are_damaged_the_log_is_learned_again(worker):
    (partition,) = await go_on(worker, {100: b"broken", 200: b"broken"})
    assert (partition.next_offset, partition.emit_from) == (0, 150)
    assert damaged(worker) == 2
    assert await worker.snapshots(FIRST) == []


async def test_a_snapshot_of_another_start_gives_way_to_one_that_fits(worker):
    (partition,) = await go_on(worker, {100: _snapshot(100), 200: _snapshot(200, start=50)})
    assert (partition.start, partition.next_offset) == (0, 100)
    assert damaged(worker) == 0


# Parked states


async def park(worker):
    """Let a worker park its first partition at offset 100, without a snapshot."""
    partition = await worker.first_read(100)
    await worker.assignment.revoked(60)
    await worker.store.discard(FIRST)
    return partition


async def another_goes_on(worker, saved):
    """Let another worker save a snapshot at an offset, and commit offset 150."""
    await worker.store.save(FIRST, saved, Extent.of(_snapshot(saved)))
    worker.broker.group[FIRST] = OffsetAndMetadata(150, start_metadata(0, "id-1"))


async def test_the_newer_snapshot_of_another_worker_beats_a_parked_state(worker, broker):
    await park(worker)
    await another_goes_on(worker, 140)
    (partition,) = await worker.assign(FIRST)
    assert partition.next_offset == 140
    await worker.read(FIRST)
    assert broker.scores[FIRST] == broker.clean(FIRST)[:100] + broker.clean(FIRST)[150:]


async def test_a_parked_state_beats_an_older_snapshot_though_others_went_on(worker):
    partition = await park(worker)
    await another_goes_on(worker, 50)
    assert await worker.assign(FIRST) == [partition]


@pytest.mark.parametrize("lost_history", ["refuse", "continue"])
async def test_a_parked_state_of_a_deleted_topic_is_lost_history(lost_history, tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, lost_history=lost_history) as worker:
        await park(worker)
        broker.ids["features"] = "id-2"
        broker.group.clear()
        partitions = await worker.assign(FIRST)
        if lost_history == "refuse":
            (error,) = worker.crashes
            assert isinstance(error, LostHistoryError)
            assert "is from a topic that was deleted" in str(error)
        else:
            assert [(p.next_offset, p.topic_id, p.pipeline.scorer) for p in partitions] == [
                (0, "id-2", None)
            ]


async def test_a_parked_state_passes_over_what_retention_deleted_if_told_to(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, lost_history="continue") as worker:
        partition = await park(worker)
        broker.delete_before(FIRST, 130)
        assert await worker.assign(FIRST) == [partition]
        assert (partition.next_offset, partition.missing) == (130, 30)
