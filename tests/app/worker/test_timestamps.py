"""Records with unusual timestamps on a real Kafka."""

import time

import pytest

pytestmark = pytest.mark.real_kafka

_NOW = int(time.time() * 1000)
_ANY = {"message.timestamp.after.max.ms": str(2**63 - 1)}


def test_records_without_a_time_or_of_the_future_are_scored(
    client, settings, start_worker, topic_name
):
    client.create(topic_name, **_ANY)
    times = [_NOW, -1, _NOW + 10 * 365 * 86_400_000, _NOW]
    client.send(topic_name, [(0, b'{"a": 1}', None, (), moment) for moment in times])
    worker = start_worker(delivery="exactly_once").wait_records(len(times))
    assert worker.terminate() == 0
    assert [score.timestamp for score in client.read(settings.scores_topic)] == times


def test_a_partition_waits_until_scores_of_its_time_are_taken(
    client, settings, start_worker, topic_name
):
    client.create(topic_name, **_ANY)
    client.create(settings.scores_topic)
    client.send(topic_name, [(0, b'{"a": 1}', None, (), _NOW + 10 * 86_400_000)])
    worker = start_worker()
    worker.wait_until(lambda: "InvalidTimestampError" in worker.log(), "refused by the topic")
    assert f"topic {settings.scores_topic} has message.timestamp.after.max.ms=" in worker.log()
    client.configure(settings.scores_topic, **_ANY)
    worker.wait_records(1)
    assert worker.terminate() == 0
    assert len(client.read(settings.scores_topic)) == 1
