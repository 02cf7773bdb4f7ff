"""Snapshots as `faust-oslrau inspect` reads them: many, of which one may have 100 MB."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest
from faust.types import TP

from faust_oslrau.app.offline.inspection import describe, read_snapshots
from faust_oslrau.app.pipeline import Snapshot
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import FolderStore
from faust_oslrau.learner.state import Extent

_PARTITIONS = [TP("features", number) for number in range(2)]
_SCORER_BYTES = 20_000_000


@pytest.fixture
def settings(tmp_path):
    return replace(Settings(), snapshots=f"folder:{tmp_path}")


async def _fill(folder, settings):
    """Save two snapshots of each partition, and damage the newest of the second one."""
    store = FolderStore(folder, settings.app_id)
    for tp in _PARTITIONS:
        await store.open(tp)
        for offset in (100, 200):
            scorer = bytes(_SCORER_BYTES)
            snapshot = Snapshot(*tp, 0, offset, ("a",), {}, "1", offset, 3, scorer)
            await store.save(tp, offset, Extent.of(snapshot.to_bytes()))
    newest = max((folder / settings.app_id / "features" / "1").iterdir())
    newest.write_bytes(b"damaged")


async def test_a_listing_holds_no_snapshot_in_memory(settings, tmp_path):
    await _fill(tmp_path, settings)
    tracemalloc.start()
    listed = [describe(each, 0.0) async for each in read_snapshots(settings, _PARTITIONS)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(each["partition"], each["next_offset"]) for each in listed] == [
        (0, 200), (0, 100), (1, 200), (1, 100),
    ]  # fmt: skip
    assert [each["problem"] is None for each in listed] == [True, True, False, True]
    assert peak < _SCORER_BYTES / 2


async def test_what_needs_one_of_each_partition_reads_up_to_the_newest_undamaged_one(
    settings, tmp_path
):
    await _fill(tmp_path, settings)
    found = read_snapshots(settings, _PARTITIONS, only_newest=True)
    offsets = [(each.tp.partition, each.stored.next_offset) async for each in found]
    assert offsets == [(0, 200), (1, 200), (1, 100)]
