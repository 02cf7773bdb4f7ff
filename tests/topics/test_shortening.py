import orjson
import pytest

from faust_oslrau.app.pipeline.events import encode_drift
from faust_oslrau.learner import Change
from faust_oslrau.topics import OutMessage, encode_anomaly, message_bytes
from faust_oslrau.topics.shortening import shortened

PLACE = {"topic": 'feat,"record":ures', "partition": 3, "offset": 42}
SCORE = {**PLACE, "timestamp": 7, "log_likelihood": -1.5, "warming_up": False}
PLACE_HEADERS = {
    "oslrau-topic": PLACE["topic"].encode(),
    "oslrau-partition": b"3",
    "oslrau-offset": b"42",
}


def anomaly(key=10, contributions=10, record=10, forecast=10):
    """Return an anomaly whose key and members have about so many bytes."""
    listed = {"forecast": [{"field": "f" * forecast, "expected": 1.5}]}
    listed |= {"contributions": [{"field": ',"record":' + "f" * contributions}]}
    value = encode_anomaly(orjson.dumps(SCORE | listed), orjson.dumps({"x": "r" * record}))
    return OutMessage(42, b"k" * key, value, 7)


def size(message):
    return message_bytes(message.key, message.value, message.headers)


def test_what_fits_stays_as_it_is():
    message = anomaly()
    assert shortened(message, size(message)) is message


@pytest.mark.parametrize("largest", ["key", "contributions", "record", "forecast"])
def test_the_largest_part_goes_first_and_headers_say_of_which_record(largest):
    message = anomaly(**{largest: 50_000})
    short = shortened(message, 20_000)
    left = set(orjson.loads(short.value)) - SCORE.keys()
    left |= {"key"} if short.key else set()
    assert left == {"key", "contributions", "record", "forecast"} - {largest}
    assert orjson.loads(short.value).items() >= SCORE.items()
    sizes = {"oslrau-left-out-bytes": str(size(message)).encode()}
    assert dict(short.headers) == PLACE_HEADERS | sizes
    assert size(short) <= 20_000
    assert (short.offset, short.timestamp) == (42, 7)


def test_more_goes_where_one_part_is_not_enough():
    message = anomaly(50_000, 40_000, 30_000, 45_000)
    short = shortened(message, 20_000)
    assert short.key is None and orjson.loads(short.value) == SCORE
    assert dict(short.headers)["oslrau-left-out-bytes"] == str(size(message)).encode()


def test_an_event_loses_its_key_only():
    event = encode_drift({**PLACE, "timestamp": 7}, Change(1.5, 900))
    short = shortened(OutMessage(42, b"k" * 50_000, event, 7), 20_000)
    assert (short.key, short.value) == (None, event)
    assert dict(short.headers).items() >= PLACE_HEADERS.items()


def test_where_nothing_fits_the_headers_remain():
    short = shortened(anomaly(), 200)
    assert (short.key, short.value) == (None, None)
    assert dict(short.headers).items() >= PLACE_HEADERS.items()


def test_an_event_stays_a_cloud_event_without_its_trace():
    event = encode_drift({**PLACE, "timestamp": 7}, Change(1.5, 900))
    told = (("traceparent", b"t"), ("ce_id", b"42/drift"), ("content-type", b"application/json"))
    short = shortened(OutMessage(42, b"k" * 50_000, event, 7, told), 20_000)
    assert set(told[1:]) <= set(short.headers) and told[0] not in short.headers
    assert PLACE_HEADERS.items() <= dict(short.headers).items()
