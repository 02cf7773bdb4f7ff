"""Records with unusual timestamps, and such that just fit into their topic; on a real Kafka."""

import random
import time

import orjson
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


# What a topic takes unless told otherwise is 1,048,588 bytes, of which Kafka's frame is some 70.
# Nothing is gained by compressing it, and little is lost.
_LONGEST_KEY = random.Random(1).randbytes(1_048_480)


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_scores_that_are_too_large_lose_their_key(
    delivery, client, settings, start_worker, topic_name
):
    client.create(topic_name)
    client.create(settings.scores_topic)
    client.send(topic_name, [(0, b'{"a":1}', _LONGEST_KEY), (0, b'{"a":2}', b"short")])
    worker = start_worker(delivery=delivery).wait_records(2)
    assert worker.terminate() == 0
    assert f"topic {settings.scores_topic} takes messages of 1048588 bytes" in worker.log()
    scores = client.read(settings.scores_topic)
    assert [score.key for score in scores] == [None, b"short"]
    assert [orjson.loads(score.value)["offset"] for score in scores] == [0, 1]
    headers = {name: text.decode() for name, text in scores[0].headers}
    assert headers.pop("oslrau-left-out-bytes")
    assert headers == {"oslrau-topic": topic_name, "oslrau-partition": "0", "oslrau-offset": "0"}
