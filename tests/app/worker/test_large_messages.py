"""Records that just fit into their topic, and messages about them that do not; on a real Kafka."""

import random

import orjson
import pytest

pytestmark = pytest.mark.real_kafka

# What a topic takes unless told otherwise is 1,048,588 bytes, of which Kafka's frame is some 70.
# Nothing is gained by compressing it, and little is lost.
_LONGEST_KEY = random.Random(1).randbytes(1_048_480)


@pytest.fixture(params=["at_least_once", "exactly_once"])
def delivery(request):
    return {"delivery": request.param}


def test_scores_that_are_too_large_lose_their_key(
    delivery, client, settings, start_worker, topic_name
):
    client.create(topic_name)
    client.create(settings.scores_topic)
    client.send(topic_name, [(0, b'{"a":1}', _LONGEST_KEY), (0, b'{"a":2}', b"short")])
    worker = start_worker(**delivery).wait_records(2)
    assert worker.terminate() == 0
    assert f"topic {settings.scores_topic} takes messages of 1048588 bytes" in worker.log()
    scores = client.read(settings.scores_topic)
    assert [score.key for score in scores] == [None, b"short"]
    assert [orjson.loads(score.value)["offset"] for score in scores] == [0, 1]
    headers = {name: text.decode() for name, text in scores[0].headers}
    assert headers.pop("oslrau-left-out-bytes")
    assert headers == {"oslrau-topic": topic_name, "oslrau-partition": "0", "oslrau-offset": "0"}
