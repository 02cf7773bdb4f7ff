"""Every score once, or at least once, through kills and zombies; on a real Kafka."""

from dataclasses import replace

import pytest
from clean_run import assert_as_clean, clean_run, rows, scores_of
from worker_settings import snapshots_in

pytestmark = pytest.mark.real_kafka

_OFTEN = {"snapshot_interval": 0.2, "snapshot_records": 1000}
_ONCE = {"delivery": "exactly_once", **_OFTEN}


@pytest.mark.parametrize("snapshots", ["folder", "off"])
def test_exactly_once_a_committed_reader_sees_each_score_once_through_kills(
    snapshots, client, settings, start_worker, topic_name, tmp_path
):
    settings = replace(settings, snapshots=snapshots_in(snapshots, settings, tmp_path))
    client.create(topic_name, 2)
    for seed in range(2):
        client.send(topic_name, [*rows(9_998, 2, seed), (0, b"broken"), (1, b"broken")])
        scores = client.wait_messages(settings.scores_topic, 0)
        worker = start_worker(session_timeout=2, snapshots=snapshots, **_ONCE)
        client.wait_messages(settings.scores_topic, scores + 2_500)
        worker.kill()
    last = start_worker(snapshots=snapshots, **_ONCE).wait_ready()
    last.wait_offsets(10_000)
    assert ("oslrau_snapshot_bytes{" in last.get("/metrics")[1]) == (snapshots != "off")
    assert last.terminate() == 0
    assert len(client.read(settings.dead_letter_topic)) == 4
    if snapshots != "off":
        assert_as_clean(client, settings, 2)
    else:
        assert scores_of(client, settings) == clean_run(client, settings)[0]


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_worker_that_lost_its_partitions_harms_nothing(
    delivery, client, settings, start_worker, topic_name, free_port
):
    client.create(topic_name, 2)
    client.send(topic_name, rows(30_000, 2))
    options = {"session_timeout": 2, "delivery": delivery, **_OFTEN}
    zombie = start_worker(**options)
    client.wait_messages(settings.scores_topic, 4_000)
    zombie.pause()
    heir = start_worker(web_port=free_port(), **options).wait_ready()
    heir.wait_offsets(15_000)
    client.send(topic_name, rows(30_000, 2, seed=1))
    zombie.go_on()
    heir.wait_ready()
    for worker in (zombie, heir):
        worker.wait_until(lambda w=worker: len(w.model()) == 1, "sharing")
        worker.wait_offsets(30_000)
    assert zombie.terminate() == heir.terminate() == 0
    assert_as_clean(client, settings, 2, delivery)
