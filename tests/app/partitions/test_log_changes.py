"""Logs that change while nobody looks, or while a worker reads them; on a real Kafka."""

import contextlib
import itertools
import threading
import time
from collections import Counter
from dataclasses import replace

import orjson
import pytest
from aiokafka.errors import KafkaError
from clean_run import assert_as_clean, assert_same_states, clean_run, newest_states, rows, scores_of

pytestmark = pytest.mark.real_kafka

_GOING_ON = {"lost_history": "continue"}


@pytest.fixture
def settings(settings):
    return replace(settings, features=("a", "b"))


def _anew(client, topic, number, seed=9):
    """Delete the topic, and make one of its name with so many records."""
    client.delete(topic)
    client.create(topic)
    client.send(topic, rows(number, seed=seed))


@pytest.mark.parametrize(
    ("topic", "delivery"),
    [("source", "at_least_once"), ("scores", "at_least_once"), ("scores", "exactly_once")],
)
def test_a_topic_that_is_deleted_under_a_running_worker_stays_deleted(
    topic, delivery, client, settings, start_worker, topic_name
):
    client.create(topic_name, 3)
    client.send(topic_name, rows(300, 3))
    worker = start_worker(delivery=delivery, snapshot_interval=0.3).wait_records(300)
    worker.wait_saved(100)  # else nothing tells that there was another topic
    deleted = topic_name if topic == "source" else settings.scores_topic
    client.delete(deleted)
    for _ in range(8):  # brokers create a topic within a second of a request that names it
        if topic == "scores":
            client.send(topic_name, rows(30, 3, seed=1))
        time.sleep(1)
        assert deleted not in client.topics()
    client.create(deleted, 3)  # which fails if there is one
    assert len(client.partitions(deleted)) == 3
    if topic == "source":
        assert worker.wait() == 4
        assert "is from a topic that was deleted" in worker.log().splitlines()[-1]
    else:
        worker.wait_records(540)
        assert worker.terminate() == 0


def test_a_recreated_topic_while_the_worker_was_away_is_noticed_however_long_it_is(
    client, settings, start_worker, topic_name
):
    client.create(topic_name)
    client.send(topic_name, rows(500))
    start_worker().wait_records(500).terminate()
    _anew(client, topic_name, 900)
    refused = start_worker()
    assert refused.wait() == 4
    assert "is from a topic that was deleted" in refused.log().splitlines()[-1]
    worker = start_worker(**_GOING_ON).wait_records(900)
    assert worker.model()[0]["records"] == 900
    worker.terminate()
    assert scores_of(client, settings)[0][500:] == clean_run(client, settings)[0][0]


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_topic_recreated_while_records_are_written_to_it_is_learned_from_its_start(
    delivery, client, settings, start_worker, topic_name
):
    client.create(topic_name)
    worker = start_worker(**_GOING_ON, delivery=delivery).wait_ready()
    enough = threading.Event()

    def write():
        for seed in itertools.count():
            if enough.is_set():
                return
            with contextlib.suppress(KafkaError):  # there is no such topic for a moment
                client.send(topic_name, rows(200, seed=seed))

    writer = threading.Thread(target=write)
    writer.start()
    worker.wait_records(1000)
    client.delete(topic_name)
    client.create(topic_name)
    worker.wait_until(lambda: "recreated" in worker.log(), "aware of it")
    worker.wait_ready()
    enough.set()
    writer.join()
    number = len(client.read(topic_name))
    worker.wait_offsets(number)
    assert worker.terminate() == 0
    scores, states = clean_run(client, settings)
    assert scores_of(client, settings)[0][-number:] == scores[0]
    assert_same_states(newest_states(settings, 1), states)


def test_partitions_added_under_a_running_worker_are_scored(
    client, settings, start_worker, topic_name
):
    client.create(topic_name, 3)
    client.send(topic_name, rows(600, 3))
    worker = start_worker(delivery="exactly_once").wait_records(600)
    client.add_partitions(topic_name, 5)
    client.send(topic_name, rows(1000, 5, seed=1))
    worker.wait_records(1600)
    assert worker.terminate() == 0
    assert_as_clean(client, settings, 5)


def test_retention_that_overtakes_a_running_worker_loses_records_that_it_counts(
    client, start_worker, topic_name
):
    client.create(topic_name)
    client.send(topic_name, rows(500))
    worker = start_worker(session_timeout=60, **_GOING_ON).wait_records(500)
    worker.pause()
    client.send(topic_name, rows(1, seed=1))  # the answer to the fetch that is under way
    client.send(topic_name, rows(999, seed=2))
    client.delete_before(topic_name, 0, 1100)
    worker.go_on()
    worker.wait_offsets(1500)
    worker.wait_records(900)
    missing = worker.metric("oslrau_missing_offsets_total")
    assert missing in (599, 600)
    assert worker.model()[0]["records"] == 1500 - missing
    assert worker.terminate() == 0


def test_records_that_compaction_removed_are_counted_and_no_loss(
    client, settings, start_worker, topic_name
):
    quick = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    client.create(topic_name, 1, **{"cleanup.policy": "compact", **quick})
    # Each record replaces the one before: what compaction leaves is in the middle and at the end.
    for seed in range(200):
        client.send(topic_name, [(0, row[1], b"same") for row in rows(5, seed=seed)])
        found = client.read(topic_name)
        if seed > 5 and found[0].offset > 0:
            break
    else:
        pytest.fail("the log was never compacted")
    left = len(client.read(topic_name))
    worker = start_worker().wait_ready()
    scored = lambda: worker.metric("oslrau_records_total", outcome="scored")  # noqa: E731
    missing = lambda: worker.metric("oslrau_missing_offsets_total")  # noqa: E731
    worker.wait_until(lambda: missing() + scored() == found[-1].offset + 1, "done")
    done = scored()
    assert done <= left
    worker.terminate()
    client.send(topic_name, rows(10, seed=1000))
    start_worker().wait_records(10).terminate()  # goes on from its snapshot: no history is lost
    offsets = Counter(
        orjson.loads(score.value)["offset"] for score in client.read(settings.scores_topic)
    )
    assert set(offsets.values()) == {1}
    assert len(offsets) == done + 10
