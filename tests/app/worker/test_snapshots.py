"""Workers that go on from snapshots, on a real Kafka: in the topic, a folder, a real S3 server."""

from dataclasses import replace

import pytest
from clean_run import assert_as_clean, rows
from worker_settings import snapshots_in

pytestmark = pytest.mark.real_kafka

# Snapshots every few hundred records.
_OFTEN = {"snapshot_interval": 0.1, "snapshot_records": 500, "batch_records": 500}


@pytest.fixture
def settings(settings, request, tmp_path):
    kind = getattr(request, "param", "topic")
    if kind == "bucket":
        return replace(settings, snapshots=request.getfixturevalue("address"))
    return replace(settings, snapshots=snapshots_in(kind, settings, tmp_path))


def test_a_restart_goes_on_from_the_last_snapshot(client, settings, start_worker, topic_name):
    client.create(topic_name, 2)
    client.send(topic_name, [*rows(3000, 2), (0, b"broken")])
    assert start_worker().wait_records(3001).terminate() == 0
    client.send(topic_name, rows(1000, 2, seed=1))
    worker = start_worker().wait_records(1000)
    assert worker.metric("oslrau_records_total", outcome="replayed") == 0
    assert sorted(part["snapshot_offset"] for part in worker.model()) == [1500, 1501]
    worker.wait_metric(2, "oslrau_stage_seconds_count", stage="restore")
    assert worker.terminate() == 0
    assert_as_clean(client, settings, 2)


@pytest.mark.parametrize("settings", ["topic", "folder", "bucket"], indirect=True)
def test_after_kills_all_is_as_in_a_clean_run(client, settings, start_worker, topic_name):
    client.create(topic_name, 2)
    total = 0
    for seed in range(3):
        client.send(topic_name, rows(10_000, 2, seed))
        total += 10_000
        found = client.wait_messages(settings.scores_topic, 0)
        worker = start_worker(session_timeout=2, commit_seconds=0.7, **_OFTEN)
        client.wait_messages(settings.scores_topic, found + 4_000)  # in the middle of its work
        worker.kill()
    last = start_worker(**_OFTEN).wait_ready()
    last.wait_offsets(total // 2)
    assert last.metric("oslrau_records_total", outcome="replayed") < total / 2
    assert last.terminate() == 0
    assert_as_clean(client, settings, 2, "at_least_once")
