"""The state from which a partition continues, found in files that a real pipeline wrote."""

import asyncio
from contextlib import closing
from dataclasses import replace

import pytest
from memory_worker import (
    FIRST,
    SECOND,
    SETTINGS,
    MemoryBroker,
    MemoryWorker,
    clean_scores,
    records,
    values,
)
from prometheus_client import CollectorRegistry

from faust_oslrau.app.kafka.positions import PartitionLog
from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.partitions.compute import Compute
from faust_oslrau.app.partitions.opening import Opener
from faust_oslrau.app.partitions.resume import LostHistoryError, OtherModelError, Resume
from faust_oslrau.app.pipeline import (
    IncompatibleSnapshotError,
    PartitionPipeline,
    Snapshot,
    initial_digest,
)
from faust_oslrau.app.snapshots import FolderStore
from faust_oslrau.learner.state import Extent

_LOG = values(300)


def _log(**offsets):
    """What a broker says of a partition that was scored up to offset 150."""
    known = {"first": 0, "end": 300, "configured": 0, "committed": 150, "recorded": 0}
    return PartitionLog(FIRST, **{**known, "topic_id": "id-1", "recorded_topic": "id-1", **offsets})


def _snapshot(next_offset, start=0, tp=FIRST, topic_id="id-1", settings=None):
    """Return the bytes of a state that has learned a log from `start` up to an offset."""
    pipeline = PartitionPipeline(*tp, settings or SETTINGS)
    pipeline.process(records(tp, _LOG[start:next_offset], start))
    return pipeline.snapshot(start, next_offset, topic_id).to_bytes()


@pytest.fixture
def store(tmp_path):
    store = FolderStore(tmp_path, "app")
    asyncio.run(store.open(FIRST))
    return store


@pytest.fixture
def save(store):
    """A function that puts bytes into the store as the snapshot at an offset."""
    return lambda offset, data: asyncio.run(store.save(FIRST, offset, Extent.of(data)))


@pytest.fixture
def metrics():
    return Metrics(CollectorRegistry())


@pytest.fixture
def find(store, metrics):
    """A function that returns where the partition continues."""
    with closing(Compute()) as compute:
        yield lambda log, settings=None: asyncio.run(
            Opener(settings or SETTINGS, store, compute, metrics).find(log, None)
        )


def _offsets(store):
    async def load():
        return [stored.next_offset async for stored in store.load(FIRST)]

    return asyncio.run(load())


# From the store


def test_the_newest_snapshot_goes_on_to_the_same_scores(find, save, metrics):
    save(100, _snapshot(100))
    save(200, _snapshot(200))
    found = find(_log())
    assert found.resume == Resume(0, 200, committed=150, topic_id="id-1")
    assert found.snapshot == (200, len(_snapshot(200)))
    rest = found.pipeline.process(records(FIRST, _LOG[200:], 200)).scores
    assert [score.value for score in rest] == clean_scores(FIRST, _LOG)[200:]
    restores = {"topic": "features", "partition": "0", "stage": "restore"}
    assert metrics.registry.get_sample_value("oslrau_stage_seconds_count", restores) == 1


def test_without_a_snapshot_a_log_is_learned_again_with_the_same_initial_model_only(find, tmp_path):
    """With other scores of the old records, those of the new ones would be others, too."""
    settings = {None: SETTINGS}
    for n in (100, 120):
        (tmp_path / str(n)).write_bytes(_snapshot(n))
        with_model = replace(SETTINGS, initial_model=str(tmp_path / str(n)))
        settings[initial_digest(with_model)] = with_model
    for recorded in settings:
        log = _log(recorded_model=recorded)
        for now, chosen in settings.items():
            if now == recorded:
                assert find(log, chosen).resume == Resume(0, 150, committed=150, topic_id="id-1")
                continue
            with pytest.raises(OtherModelError, match="features/0 began with initial_model = "):
                find(log, chosen)
            anew = _log(recorded_model=recorded, committed=None, recorded=None)
            assert find(anew, chosen).resume.start == 0


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
def test_a_damaged_snapshot_gives_way_to_the_older_one(damage, find, save, store, metrics, caplog):
    save(100, _snapshot(100))
    save(200, damage(_snapshot(200)))
    assert find(_log()).snapshot == (100, len(_snapshot(100)))
    assert metrics.of_partition(*FIRST).snapshot_failures["damaged"] == 1
    assert "is damaged: " in caplog.text
    assert _offsets(store) == [100]  # so that the next one does not replace the whole one


def test_a_snapshot_of_another_version_is_refused_and_kept(find, save, store):
    data = _snapshot(200)
    save(200, data[:7] + b"\x09" + data[8:])
    told = "of features/0 at offset 200 is from another version, .* version 1, got 9: .* --forget"
    with pytest.raises(IncompatibleSnapshotError, match=told):
        find(_log())
    assert _offsets(store) == [200]


def test_where_all_snapshots_are_damaged_the_log_is_learned_again(find, save, store, metrics):
    for offset in (100, 200):
        save(offset, b"broken")
    found = find(_log())
    assert (found.resume.start, found.resume.emit_from, found.snapshot) == (0, 150, None)
    assert metrics.of_partition(*FIRST).snapshot_failures["damaged"] == 2
    assert _offsets(store) == []


def test_a_snapshot_of_another_start_gives_way_to_one_that_fits(find, save, metrics, store):
    save(100, _snapshot(100))
    save(200, _snapshot(200, start=50))
    assert find(_log()).snapshot == (100, len(_snapshot(100)))
    assert metrics.of_partition(*FIRST).snapshot_failures["damaged"] == 0


# Parked states


class _Parked:
    """A worker that parked its first partition at offset 100."""

    def __init__(self, folder):
        self.worker = MemoryWorker(folder, MemoryBroker(_LOG))

    async def __aenter__(self):
        self.partition = await self.worker.first_read(100)
        await self.worker.assignment.revoked(60)
        await self.worker.store.discard(FIRST)
        return self

    async def __aexit__(self, *_):
        await self.worker.assignment.stop(0)

    async def find(self, log, **changes):
        settings = replace(self.worker.settings, **changes)
        with closing(Compute()) as compute:
            opener = Opener(settings, self.worker.store, compute, self.worker.metrics)
            return await opener.find(log, self.partition)


async def test_the_newer_snapshot_of_another_worker_beats_a_parked_state(tmp_path):
    async with _Parked(tmp_path) as parked:
        await parked.worker.store.save(FIRST, 140, Extent.of(_snapshot(140)))
        found = await parked.find(_log(committed=150))
        assert found.resume == Resume(0, 150, committed=150, topic_id="id-1")
        assert found.pipeline.next_offset == 140


async def test_a_parked_state_beats_an_older_snapshot_though_others_went_on(tmp_path):
    async with _Parked(tmp_path) as parked:
        await parked.worker.store.save(FIRST, 50, Extent.of(_snapshot(50)))
        assert await parked.find(_log(committed=150)) is parked.partition


async def test_a_parked_state_of_a_deleted_topic_is_lost_history(tmp_path):
    async with _Parked(tmp_path) as parked:
        log = _log(topic_id="id-2", committed=None, recorded=None)
        with pytest.raises(LostHistoryError, match="is from a topic that was deleted"):
            await parked.find(log)
        found = await parked.find(log, lost_history="continue")
        assert (found.resume, found.pipeline.scorer) == (Resume(0, 0, topic_id="id-2"), None)


async def test_a_parked_state_passes_over_what_retention_deleted_if_told_to(tmp_path):
    async with _Parked(tmp_path) as parked:
        log = _log(first=130, committed=100)
        assert await parked.find(log, lost_history="continue") is parked.partition
        assert (parked.partition.next_offset, parked.partition.missing) == (130, 30)
