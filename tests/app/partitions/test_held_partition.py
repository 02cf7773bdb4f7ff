from __future__ import annotations

import asyncio
import gc
import math
import threading
import weakref
from contextlib import closing
from dataclasses import replace

import pytest
from faust.types import TP
from prometheus_client import CollectorRegistry

from faust_oslrau.app import pace
from faust_oslrau.app.kafka.batches import RecordBatch
from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.partitions.compute import Compute
from faust_oslrau.app.partitions.held_partition import HeldPartition, OutOfPlaceError
from faust_oslrau.app.partitions.resume import Resume
from faust_oslrau.app.pipeline import STAGES, PartitionPipeline, Snapshot
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import FolderStore
from faust_oslrau.app.snapshots.schedule import SnapshotSchedule
from faust_oslrau.topics import Record


class _Outbox:
    """Takes what is sent, or fails."""

    def __init__(self):
        self.offsets = []
        self.broken = False
        self.last = None

    async def __call__(self, tp, block, position):
        if self.broken:
            raise asyncio.CancelledError
        self.last = weakref.ref(block.rows)
        self.offsets += [message.offset for message in block.scores]


@pytest.fixture
def outbox():
    return _Outbox()


_TP = TP("features", 0)


@pytest.fixture
def store(tmp_path):
    store = FolderStore(tmp_path, "app")
    asyncio.run(store.open(_TP))
    return store


@pytest.fixture
def hold(outbox, store):
    """A function that returns a partition that goes on at `resume`."""

    def hold(resume):
        metrics = Metrics(CollectorRegistry()).of_partition(*_TP)
        pipeline = PartitionPipeline(*_TP, Settings())
        schedule = SnapshotSchedule(_TP, resume.start, store, Settings(), metrics)
        return HeldPartition(_TP, pipeline, resume, executor, outbox, metrics, schedule)

    with closing(Compute()) as executor:
        yield hold


def _batch(*offsets, position=None):
    records = [Record("features", 0, offset, 0, None, b'{"a": 1}') for offset in offsets]
    return RecordBatch(offsets[0] if position is None else position, records)


def test_outputs_go_out_from_the_first_that_was_not_emitted(hold, outbox):
    partition = hold(Resume(0, emit_from=3))
    asyncio.run(partition.process(_batch(0, 1, 2, 3, 4)))
    assert outbox.offsets == [3, 4]
    assert partition.pipeline.scorer.n_records == 5
    assert (partition.next_offset, partition.committable) == (5, 5)


def test_while_learning_again_the_committed_offset_does_not_go_back(hold, outbox):
    partition = hold(Resume(0, emit_from=100))
    asyncio.run(partition.process(_batch(0, 1)))
    assert outbox.offsets == []
    assert partition.committable == 100


def test_records_that_were_processed_are_skipped(hold, outbox):
    partition = hold(Resume(0, 0))
    for batch in (_batch(0, 1, 2), _batch(1, 2, 3), _batch(0, 1)):
        asyncio.run(partition.process(batch))
    assert outbox.offsets == [0, 1, 2, 3]


def test_offsets_that_the_log_lacks_are_counted_and_passed_over(hold, outbox):
    partition = hold(Resume(0, 0))
    asyncio.run(partition.process(_batch(2, 4, 5, position=0)))
    asyncio.run(partition.process(_batch(8, position=6)))
    assert outbox.offsets == [2, 4, 5, 8]
    assert partition.missing == 5


@pytest.mark.parametrize("short", [0.0, math.inf])
def test_a_block_that_is_sent_is_kept_nowhere(hold, outbox, short, monkeypatch):
    monkeypatch.setattr(pace, "SHORT_BLOCK_SECONDS", short)
    partition = hold(Resume(0, 0))
    asyncio.run(partition.process(_batch(*range(1000))))
    gc.collect()
    assert partition.next_offset == 1000
    assert outbox.last() is None


def test_blocks_that_are_short_are_processed_in_the_event_loop_and_long_ones_are_not(
    hold, monkeypatch
):
    threads = []
    process = PartitionPipeline.process

    def watched(pipeline, records):
        threads.append(threading.get_ident())
        return replace(
            process(pipeline, records), seconds=dict.fromkeys(STAGES, len(records) / 4000)
        )

    monkeypatch.setattr(PartitionPipeline, "process", watched)
    partition = hold(Resume(0, 0))
    for first, size in ((0, 10), (10, 20), (30, 21), (51, 20)):  # the first may be of any length
        asyncio.run(partition.process(_batch(*range(first, first + size))))
    here = threading.get_ident()
    assert [thread == here for thread in threads] == [False, True, False, True]


def test_a_batch_after_a_dropped_one_is_refused(hold, outbox):
    partition = hold(Resume(0, 0))
    asyncio.run(partition.process(_batch(0, 1)))
    with pytest.raises(OutOfPlaceError):
        asyncio.run(partition.process(_batch(4, 5)))
    assert (outbox.offsets, partition.next_offset) == ([0, 1], 2)


def test_a_state_that_learned_more_than_was_acknowledged_is_not_whole(hold, outbox):
    partition = hold(Resume(0, 0))
    asyncio.run(partition.process(_batch(0, 1)))
    assert partition.is_whole
    outbox.broken = True
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(partition.process(_batch(2, 3)))
    assert not partition.is_whole


def test_after_a_rebalance_a_kept_state_emits_only_what_nobody_did_meanwhile(hold, outbox):
    partition = hold(Resume(0, 0))
    asyncio.run(partition.process(_batch(0, 1)))
    partition.update_offsets(Resume(0, 3, committed=3))
    asyncio.run(partition.process(_batch(2, 3, 4)))
    assert outbox.offsets == [0, 1, 3, 4]


async def _stored(store):
    return [Snapshot.from_bytes(stored.data.read()) async for stored in store.load(_TP)]


def test_a_snapshot_holds_what_is_acknowledged_and_nothing_else(hold, outbox, store):
    partition = hold(Resume(0, 0))
    asyncio.run(partition.process(_batch(0, 1)))
    asyncio.run(partition.save_snapshot(now=True))
    outbox.broken = True
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(partition.process(_batch(2, 3)))
    asyncio.run(partition.save_snapshot(now=True))
    (snapshot,) = asyncio.run(_stored(store))
    assert (snapshot.start, snapshot.next_offset, snapshot.records) == (0, 2, 2)


def test_nothing_new_makes_no_snapshot(hold, store):
    partition = hold(Resume(5, 5))
    asyncio.run(partition.save_snapshot(now=True))
    assert asyncio.run(_stored(store)) == []


def test_records_that_the_log_lost_are_passed_over_and_counted(hold, outbox):
    partition = hold(Resume(0, 0))
    asyncio.run(partition.process(_batch(0, 1)))
    partition.skip_deleted(10)
    asyncio.run(partition.process(_batch(10, 11)))
    assert outbox.offsets == [0, 1, 10, 11]
    assert (partition.missing, partition.is_whole) == (8, True)
