"""What the metrics of running workers say when partitions move and when snapshots fail."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_kafka

_ROWS = [(i % 4, b'{"a": %d, "b": 1}' % (i % 97)) for i in range(4000)]


def _shown(worker):
    """Return the partitions that a worker shows any series of."""
    return set(re.findall(r'partition="(\d+)"', worker.get("/metrics")[1]))


def test_series_of_partitions_go_with_them(client, start_worker, topic_name, free_port):
    client.create(topic_name, 4)
    client.send(topic_name, _ROWS)
    first = start_worker().wait_records(4000)
    first.wait_until(lambda: first.metric("oslrau_network_parameters") > 0, "measured")
    assert _shown(first) == set("0123")
    second = start_worker(web_port=free_port()).wait_ready()
    second.wait_until(lambda: len(_shown(first)) == len(_shown(second)) == 2, "shared out")
    assert _shown(first) | _shown(second) == set("0123")
    for worker in (first, second):
        worker.wait_metric(2, "oslrau_assigned_partitions")
        assert worker.metric("oslrau_rebalances_total") >= 1
    # A restored network is shown at once; its changes were the first worker's.
    second.wait_until(lambda: second.metric("oslrau_network_parameters") > 0, "measured")
    assert second.metric("oslrau_structure_changes_total") == 0


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept"


def test_a_snapshot_that_cannot_be_saved_is_counted_and_saved_later(
    client, start_worker, topic_name, folder
):
    client.create(topic_name, 1)
    worker = start_worker(snapshots=f"folder:{folder}", snapshot_interval=0.2)
    worker.wait_ready()
    _replace_by_file(folder)
    client.send(topic_name, [(0, b'{"a": 1}')])
    failures = "oslrau_snapshot_failures_total"
    worker.wait_until(lambda: worker.metric(failures, kind="save") > 0, "failed")
    worker.wait_until(lambda: worker.metric("oslrau_snapshot_age_seconds") > 1, "late")
    worker.wait_metric(1, "oslrau_records_total", outcome="scored")  # it goes on


def test_partitions_that_cannot_be_opened_are_counted(client, start_worker, topic_name, folder):
    client.create(topic_name, 1)
    folder.write_text("a file where a folder should be")
    worker = start_worker(snapshots=f"folder:{folder}")
    worker.wait_until(lambda: worker.metric("oslrau_failed_openings_total") > 1, "tried twice")
    status, text = worker.get("/readyz")
    assert (status, "partitions are being opened" in text) == (503, True)
    folder.unlink()
    worker.wait_ready()


def _replace_by_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("a file where a folder should be")
