"""Workers that go on from snapshots, on a real Kafka: in the topic, a folder, a real S3 server."""

from dataclasses import replace

import pytest
from clean_run import assert_as_clean, clean_run, rows, scores_of
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


@pytest.mark.parametrize(
    ("settings", "delivery"),
    [
        *((kind, "at_least_once") for kind in ("topic", "folder", "bucket")),
        *((kind, "exactly_once") for kind in ("folder", "off")),
    ],
    indirect=["settings"],
)
def test_after_kills_all_is_as_in_a_clean_run(delivery, client, settings, start_worker, topic_name):
    options = {"delivery": delivery, **_OFTEN}
    client.create(topic_name, 2)
    for seed in range(3):
        client.send(topic_name, [*rows(9_998, 2, seed), (0, b"broken"), (1, b"broken")])
        found = client.wait_messages(settings.scores_topic, 0)
        worker = start_worker(session_timeout=2, commit_seconds=0.7, **options)
        client.wait_messages(settings.scores_topic, found + 4_000)  # in the middle of its work
        worker.kill()
    last = start_worker(**options).wait_ready()
    last.wait_offsets(15_000)
    is_off = settings.snapshots == "off"
    assert ("oslrau_snapshot_bytes{" in last.get("/metrics")[1]) != is_off
    assert is_off or last.metric("oslrau_records_total", outcome="replayed") < 15_000
    assert last.terminate() == 0
    if delivery == "exactly_once":
        assert len(client.read(settings.dead_letter_topic)) == 6
    if is_off:
        assert scores_of(client, settings) == clean_run(client, settings)[0]
    else:
        assert_as_clean(client, settings, 2, delivery)
