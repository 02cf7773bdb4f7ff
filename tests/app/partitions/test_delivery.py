"""Every score once, or at least once, through kills and zombies; on a real Kafka."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clean_run import assert_same_states, clean_run, newest_states, rows, scores_of
from worker_settings import snapshots_in

pytestmark = pytest.mark.real_kafka

_OFTEN = {"snapshot_interval": 0.2, "snapshot_records": 1000}
_ONCE = {"delivery": "exactly_once", **_OFTEN}


def _unique(found):
    return {partition: set(values) for partition, values in found.items()}


def _assert_once(client, settings, partitions):
    scores, states = clean_run(client, settings)
    assert scores_of(client, settings) == scores
    assert_same_states(newest_states(settings, partitions), states)


def _assert_at_least_once(client, settings, partitions):
    scores, states = clean_run(client, settings)
    assert _unique(scores_of(client, settings)) == _unique(scores)
    assert_same_states(newest_states(settings, partitions), states)


def test_exactly_once_a_restart_repeats_nothing(client, settings, start_worker, topic_name):
    client.create(topic_name, 2)
    for seed in (0, 1):
        client.send(topic_name, rows(3000, 2, seed))
        assert start_worker(**_ONCE).wait_records(3000).terminate() == 0
    _assert_once(client, settings, 2)


@pytest.mark.parametrize("snapshots", ["topic", "folder", "off"])
def test_exactly_once_a_committed_reader_sees_each_score_once_through_kills(
    snapshots, client, settings, start_worker, topic_name, tmp_path
):
    settings = replace(settings, snapshots=snapshots_in(snapshots, settings, tmp_path))
    client.create(topic_name, 2)
    for seed in range(3):
        client.send(topic_name, rows(20_000, 2, seed))
        scores = client.wait_messages(settings.scores_topic, 0)
        worker = start_worker(session_timeout=2, snapshots=snapshots, **_ONCE)
        client.wait_messages(settings.scores_topic, scores + 5_000)
        worker.kill()
    last = start_worker(snapshots=snapshots, **_ONCE).wait_ready()
    last.wait_offsets(30_000)
    assert last.terminate() == 0
    scores, states = clean_run(client, settings)
    assert scores_of(client, settings) == scores
    if snapshots != "off":
        assert_same_states(newest_states(settings, 2), states)


def test_exactly_once_what_a_topic_does_not_take_goes_as_headers_alone(
    client, settings, start_worker, topic_name
):
    client.create(topic_name)
    client.create(settings.dead_letter_topic, **{"max.message.bytes": "100000"})
    bad = [(0, b"x"), (0, b" " * 200_000), (0, b"y"), *[(0, b"z" * 60_000)] * 5]
    client.send(topic_name, [*bad, *rows(50)])
    worker = start_worker(**_ONCE, compression="none").wait_records(58)
    assert worker.terminate() == 0
    letters = client.read(settings.dead_letter_topic)
    assert [letter.value for letter in letters] == [b"x", None, b"y", *[b"z" * 60_000] * 5]
    assert len(client.read(settings.scores_topic)) == 50


@pytest.mark.parametrize(
    ("delivery", "check"),
    [("at_least_once", _assert_at_least_once), ("exactly_once", _assert_once)],
)
def test_a_worker_that_lost_its_partitions_harms_nothing(
    delivery, check, client, settings, start_worker, topic_name, free_port
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
    check(client, settings, 2)
