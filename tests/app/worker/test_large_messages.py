"""Records that just fit into their topic, and messages about them that do not; on a real Kafka."""

import random

import orjson
import pytest

pytestmark = pytest.mark.real_kafka

# What a topic takes unless told otherwise is 1,048,588 bytes, of which Kafka's frame is some 70.
# Nothing is gained by compressing it, and little is lost.
_LONGEST_KEY = random.Random(1).randbytes(1_048_480)


def _headers(message):
    return {name: text.decode() for name, text in message.headers}


@pytest.fixture(params=["at_least_once", "exactly_once"])
def delivery(request):
    return {"delivery": request.param}


def test_scores_of_records_with_very_long_keys_are_whole_in_new_topics(
    client, settings, start_worker, topic_name
):
    client.create(topic_name)
    client.send(topic_name, [(0, b'{"a":1}', _LONGEST_KEY), (0, b'{"a":2}', b"short")])
    start_worker().wait_records(2).terminate()
    scores = client.read(settings.scores_topic)
    assert [score.key for score in scores] == [_LONGEST_KEY, b"short"]
    assert [orjson.loads(score.value)["offset"] for score in scores] == [0, 1]


def test_scores_that_a_topic_does_not_take_lose_their_key_only(
    delivery, client, settings, start_worker, topic_name
):
    client.create(topic_name)
    client.create(settings.scores_topic)
    client.send(topic_name, [(0, b'{"a":1}', _LONGEST_KEY), (0, b'{"a":2}', b"short")])
    worker = start_worker(**delivery).wait_records(2)
    worker.terminate()
    assert f"topic {settings.scores_topic} takes messages of 1048588 bytes" in worker.log()
    scores = client.read(settings.scores_topic)
    assert [score.key for score in scores] == [None, b"short"]
    assert [orjson.loads(score.value)["offset"] for score in scores] == [0, 1]
    headers = _headers(scores[0])
    assert headers.pop("oslrau-left-out-bytes")
    assert headers == {"oslrau-topic": topic_name, "oslrau-partition": "0", "oslrau-offset": "0"}


def test_anomalies_with_very_long_names_of_fields_lose_their_record_only(
    client, settings, start_worker, topic_name
):
    names = [f"{i:02d}" + "n" * 43_000 for i in range(16)]
    rng = random.Random(0)
    usual = [{name: rng.gauss(0, 1) for name in names} for _ in range(60)]
    strange = {**dict.fromkeys(names, 1e9), "note": "n" * 100_000}
    values = [orjson.dumps(row) for row in (*usual, strange)]
    client.create(topic_name)
    client.send(topic_name, [(0, value, b"key") for value in values])
    start_worker(alarm_rate=0.1).wait_records(61).terminate()
    (anomaly,) = [
        message
        for message in client.read(settings.anomalies_topic)
        if _headers(message).get("oslrau-offset") == "60"
    ]
    content = orjson.loads(anomaly.value)
    assert anomaly.key == b"key"
    assert content["offset"] == 60
    assert "record" not in content and len(content["contributions"]) == 16
