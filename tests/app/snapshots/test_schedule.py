"""When the snapshots of a partition are due."""

from types import SimpleNamespace

import pytest
from faust.types import TP
from prometheus_client import CollectorRegistry

from faust_oslrau.app import pace
from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import FolderStore
from faust_oslrau.app.snapshots import schedule as module
from faust_oslrau.app.snapshots.schedule import SnapshotSchedule

_TP = TP("features", 0)


@pytest.fixture
def clock(monkeypatch):
    """The time of the schedule, which a test moves on."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def schedule(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(pace, "SNAPSHOT_RECORDS", 1000)
    metrics = Metrics(CollectorRegistry()).of_partition(*_TP)
    settings = Settings(snapshot_interval=60.0)
    return SnapshotSchedule(_TP, 0, FolderStore(tmp_path, "app"), settings, metrics)


def test_a_snapshot_is_due_after_the_interval_or_after_the_records(schedule, clock):
    schedule.record(100, 300_000)
    assert not schedule.is_due(1099) and schedule.is_due(1100)
    clock.now += 61
    assert schedule.is_due(101) and not schedule.is_due(100)


def test_large_snapshots_are_saved_less_often(schedule, clock):
    schedule.record(100, 90_000_000)
    clock.now += 89
    assert not schedule.is_due(1_000_000)
    clock.now += 2
    assert schedule.is_due(1_000_000)
