import json
from types import SimpleNamespace

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.app.pipeline.events import encode_drift
from faust_oslrau.learner import Change
from faust_oslrau.topics import Columns, encode_anomaly, encode_scores
from faust_oslrau.topics.scores import MOST_BLAMED


def blame(nats):
    """The fields with the most nats first; other members are told apart by their size."""
    nats = np.array(nats, dtype=np.float64)
    return SimpleNamespace(
        order=np.argsort(-nats, axis=1), n_blamed=(~np.isnan(nats)).sum(axis=1), value=nats * 10,
        nats=nats, usual=nats / 8, expected=nats * 9, deviation=nats / 2, extrapolated=nats > 10,
    )  # fmt: skip


def scores(log_likelihood, p_value, is_anomaly, nats=None, forecast=None):
    m = len(log_likelihood)
    return SimpleNamespace(
        log_likelihood=np.array(log_likelihood, np.float64), p_value=np.array(p_value, np.float64),
        is_anomaly=np.array(is_anomaly, bool), n_learned=np.arange(m), warming_up=np.arange(m) < 1,
        blame=blame(np.empty((0, 2)) if nats is None else nats), forecast=forecast,
    )  # fmt: skip


def test_a_message_tells_what_was_expected_of_each_field():
    band = np.array([[1.0, np.nan], [0.1, 2.0]])
    forecast = SimpleNamespace(expected=band, low=band - 0.5, high=band + 0.5)
    block = scores([-1.5, -9], [0.25, 0], [False, True], [[8, np.nan]], forecast)
    names = ['a"%d', "b"]
    first, second = map(json.loads, encode_scores("t", 0, [7, 8], [0, 0], block, Columns(names)))
    unknown = {"field": "b", "expected": None, "low": None, "high": None}
    assert first["forecast"] == [
        {"field": 'a"%d', "expected": 1.0, "low": 0.5, "high": 1.5}, unknown
    ]  # fmt: skip
    assert second["forecast"][1] == {"field": "b", "expected": 2.0, "low": 1.5, "high": 2.5}
    assert list(second)[-2:] == ["forecast", "contributions"]


def test_anomalous_records_list_their_fields_to_blame_the_most_unusual_first():
    block = scores([0, -9, 0, -8], [1, 0, 1, 0], [False, True, False, True], [[8, np.nan], [8, 16]])
    encoded = encode_scores("t", 0, range(4), [0] * 4, block, Columns(['a"%d', "b"]))
    messages = [json.loads(message) for message in encoded]
    a = {"nats": 8.0, "usual": 1.0, "value": 80.0, "expected": 72.0, "deviation": 4.0}
    b = {"field": "b"} | {name: 2 * number for name, number in a.items()} | {"extrapolated": True}
    a = {"field": 'a"%d'} | a | {"extrapolated": False}
    assert messages[1]["contributions"] == [a]
    assert messages[3]["contributions"] == [b, a]
    assert "contributions" not in messages[0] and "contributions" not in messages[2]


def test_a_record_of_many_fields_lists_those_most_to_blame():
    block = scores([-9], [0], [True], np.arange(100.0)[None])
    (message,) = encode_scores("t", 0, [0], [0], block, Columns([f"f{i}" for i in range(100)]))
    listed = [item["field"] for item in json.loads(message)["contributions"]]
    assert listed == [f"f{i}" for i in range(99, 99 - MOST_BLAMED, -1)]


def test_only_events_have_a_member_event():
    place = {"topic": "t", "partition": 1, "offset": 8, "timestamp": None}
    event = json.loads(encode_drift(place, Change(1.5, 512)))
    assert event == {"event": "drift", **place, "statistic": 1.5, "records": 512}
    (score,) = encode_scores("t", 1, [8], [None], scores([0], [1], [False]), Columns(["x"]))
    assert "event" not in json.loads(encode_anomaly(score, b"{}"))


def test_no_records_give_no_messages():
    assert encode_scores("t", 0, [], [], scores([], [], []), Columns(["x"])) == []


TIMES = st.none() | st.integers(0, 2**53)


@given(st.lists(st.tuples(st.floats(), st.floats(), TIMES), min_size=1, max_size=20))
def test_a_message_has_all_members_in_their_order_to_the_bit_and_null_for_what_is_no_number(rows):
    log_likelihood, p_value, times = zip(*rows, strict=True)
    block = scores(log_likelihood, p_value, [False] * len(rows))
    messages = encode_scores('t"%d', 1, range(len(rows)), times, block, Columns(["x"]))
    for i, message in enumerate(messages):
        alone = {
            "topic": 't"%d', "partition": 1, "offset": i, "timestamp": times[i],
            "log_likelihood": log_likelihood[i], "p_value": p_value[i], "is_anomaly": False,
            "n_learned": i, "warming_up": i < 1,
        }  # fmt: skip
        assert message == orjson.dumps(alone)


def test_an_anomaly_holds_the_record_byte_for_byte():
    record = b' {"x": 1.50,\n "x": 2, "y": "\xc3\xa9"} '
    message = encode_anomaly(b'{"offset":1}', record)
    assert message == b'{"offset":1,"record":' + record + b"}"
    assert json.loads(message)["record"] == {"x": 2, "y": "é"}
