"""Snapshots without a broker: bytes, settings, files."""

import asyncio
import random
import resource
from dataclasses import replace

import pytest
from as_records import as_records
from faust.types import TP
from stored_snapshots import load

from faust_oslrau.app.pipeline import IncompatibleSnapshotError, PartitionPipeline
from faust_oslrau.app.settings import LearnerSettings, Settings
from faust_oslrau.app.snapshots import FolderStore, SnapshotError
from faust_oslrau.learner.state import Extent

_TP = TP("features", 3)
_SETTINGS = Settings(features=("a", "b"))


def _records(first, last):
    rng = random.Random(7)
    rows = [(rng.gauss(0, 1), rng.gauss(5, 2)) for _ in range(last)]
    return as_records([{"a": a, "b": a + b} for a, b in rows], 3)[first:]


def _pipeline(records, settings=None):
    pipeline = PartitionPipeline(*_TP, settings or _SETTINGS)
    pipeline.process(records)
    return pipeline


def test_other_settings_are_refused_and_the_message_says_what_to_do():
    snapshot = _pipeline(_records(0, 100)).snapshot(0, 100)
    changed = replace(_SETTINGS, features="auto", learner=LearnerSettings(max_nodes=900))
    with pytest.raises(IncompatibleSnapshotError) as caught:
        PartitionPipeline.restored(snapshot, changed)
    told = str(caught.value)
    assert "features = ['a', 'b'], now 'auto'; learner.max_nodes = 2000, now 900" in told
    assert "faust-oslrau inspect" in told and "\n" not in told


def test_settings_that_scores_do_not_depend_on_may_change():
    snapshot = _pipeline(_records(0, 100)).snapshot(0, 100)
    changed = replace(_SETTINGS, web_port=1, session_timeout=7, learning=False)
    assert PartitionPipeline.restored(snapshot, changed).scorer.learning is False


@pytest.fixture
def store(tmp_path):
    store = FolderStore(tmp_path, "app")
    asyncio.run(store.open(_TP))
    return store


def _save(store, *offsets):
    for offset in offsets:
        asyncio.run(store.save(_TP, offset, Extent.of(b"state at %d" % offset)))


def test_a_worker_that_lost_its_partition_replaces_nothing_newer(store):
    _save(store, 300, 400)
    _save(store, 100)
    assert [offset for offset, _ in load(store, _TP)] == [400, 300]


def test_a_worker_that_was_killed_while_it_wrote_leaves_no_snapshot(store, tmp_path):
    _save(store, 10)
    unfinished = tmp_path / "app" / "features" / "3" / "x.unfinished"
    unfinished.write_bytes(b"half")
    assert load(store, _TP) == [(10, b"state at 10")]
    _save(store, 20)
    assert not unfinished.exists()


def test_a_save_that_fails_half_way_leaves_no_file(store, tmp_path):
    _save(store, 10)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, limits[1]))
    try:
        for offset in (20, 30):
            with pytest.raises(SnapshotError):
                _save(store, offset)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.rglob("*.*")] == [f"{10:020d}.snapshot"]
    assert load(store, _TP) == [(10, b"state at 10")]


def test_a_file_in_the_way_of_the_folder_is_named(tmp_path):
    (tmp_path / "app").write_bytes(b"")
    with pytest.raises(SnapshotError, match="app/features/3"):
        asyncio.run(FolderStore(tmp_path, "app").open(_TP))


def test_a_damaged_file_is_kept_aside_and_an_error_where_another_worker_moved_it(store, tmp_path):
    _save(store, 10)

    async def reject_twice():
        async for stored in store.load(_TP):
            await store.reject(_TP, stored)
            await store.reject(_TP, stored)

    with pytest.raises(SnapshotError, match="app/features/3"):
        asyncio.run(reject_twice())
    assert list(tmp_path.rglob("*.damaged"))


def test_files_that_cannot_be_discarded_are_an_error_of_the_store(store, tmp_path):
    (tmp_path / "app" / "features" / "3" / f"{10:020d}.snapshot").mkdir()
    with pytest.raises(SnapshotError, match="app/features/3"):
        asyncio.run(store.discard(_TP))
