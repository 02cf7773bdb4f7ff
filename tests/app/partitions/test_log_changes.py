"""Logs that change while nobody looks, or while a worker reads them; on a real Kafka."""

import contextlib
import itertools
import threading
import time
from dataclasses import replace

import pytest
from aiokafka.errors import KafkaError
from clean_run import assert_same_states, clean_run, newest_states, rows, scores_of

pytestmark = pytest.mark.real_kafka

_GOING_ON = {"lost_history": "continue"}


@pytest.fixture
def settings(settings):
    return replace(settings, features=("a", "b"))


@pytest.mark.parametrize(
    ("topic", "delivery"),
    [("source", "at_least_once"), ("scores", "at_least_once"), ("scores", "exactly_once")],
)
def test_a_deleted_topic_stays_deleted(topic, delivery, client, settings, start_worker, topic_name):
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
    assert start_worker().wait_records(500).terminate() == 0
    client.delete(topic_name)
    client.create(topic_name)
    client.send(topic_name, rows(900, seed=9))
    refused = start_worker()
    assert refused.wait() == 4
    assert "is from a topic that was deleted" in refused.log().splitlines()[-1]
    worker = start_worker(**_GOING_ON).wait_records(900)
    assert worker.model()[0]["records"] == 900
    assert worker.terminate() == 0
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
