"""The lines of messages that the encoders of the topics make."""

import time
from types import SimpleNamespace

import click
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.app.offline.told import MessageReader, as_json
from faust_oslrau.app.offline.told_lines import line, odds
from faust_oslrau.app.pipeline import events
from faust_oslrau.learner import Blame, Change
from faust_oslrau.topics import (
    Columns,
    FieldChange,
    FieldState,
    Reason,
    Record,
    Rejection,
    dead_letter,
    encode_anomaly,
    encode_scores,
)
from faust_oslrau.topics.shortening import without_largest

NOON = 1767268800000  # 2026-01-01 12:00 UTC
SOURCE = {"topic": "machines", "partition": 2, "offset": 4711, "timestamp": NOON}
FIELDS = ["temperature", "vibration.rms"]


@pytest.fixture(autouse=True)
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def blame(n_blamed=1):
    row = lambda *numbers: np.array([numbers], dtype=float)  # noqa: E731
    return Blame(
        order=np.array([[0, 1]]),
        n_blamed=np.array([n_blamed]),
        value=row(88.0, 0.4),
        nats=row(12.7, 9.0),
        usual=row(3.2, 1.0),
        expected=row(61.2, 0.1),
        deviation=row(6.0, 0.01),
        extrapolated=np.array([[False, False]]),
    )


def score(is_anomaly=False, p_value=0.25, log_likelihood=-17.25, n_blamed=1):
    scored = SimpleNamespace(
        log_likelihood=np.array([log_likelihood]),
        p_value=np.array([p_value]),
        is_anomaly=np.array([is_anomaly]),
        n_learned=np.array([4592]),
        warming_up=np.array([False]),
        blame=blame(n_blamed),
        forecast=None,
    )
    (value,) = encode_scores("machines", 2, [4711], [NOON], scored, Columns(FIELDS))
    return value


def anomaly(record=b'{"temperature": 88.0}', n_blamed=1):
    return encode_anomaly(score(is_anomaly=True, p_value=0.00004, n_blamed=n_blamed), record)


def incident(state, entity="press-7", severity=61.4, name="major", fields=FIELDS):
    place = lambda offset, time: SimpleNamespace(offset=offset, timestamp=time)  # noqa: E731
    found = SimpleNamespace(
        opened=place(4700, NOON - 5000),
        start=place(4698, NOON - 6000),
        peak=place(4701, NOON - 4000),
        latest=place(4711, NOON),
        p_value=2.1e-9,
        length=1474,
        anomalies=31,
        evidence=285.1,
        severity=severity,
        severity_name=name,
        entity=entity,
    )
    event = SimpleNamespace(state=state, incident=found, blame=blame(2))
    return events.encode_incident(SOURCE, event, Columns(fields))


def entity_event(state, p_value, *aspects):
    event = SimpleNamespace(state=state, entity="press-7", p_value=p_value, aspects=aspects)
    return events.encode_entity_event(SOURCE, event, FIELDS)


def aspect(name, column, value, usual, deviations):
    return SimpleNamespace(
        name=name, column=column, value=value, usual=usual, deviations=deviations
    )


def silence(state, entity):
    silent = SimpleNamespace(
        state=state, entity=entity, last_offset=1, last_timestamp=NOON, seconds=240.0, limit=186.2
    )
    return events.encode_silence(SOURCE, silent)


def rate(entity, by):
    change = SimpleNamespace(
        state="began", entity=entity, by=by, since=NOON, seconds=60.0,
        records=12, expected=109.4, low=80, high=140,
    )  # fmt: skip
    return events.encode_rate_change(SOURCE, change)


def field(*change, **more):
    return events.encode_field_change(SOURCE, FieldChange(*change, **more))


def told(value, key=b"k", headers=(), entity=None, timestamp=None):
    record = Record("alerts", 0, 1, timestamp, key, value, headers)
    return MessageReader(entity).read(record)


def cells(value, **of_record):
    """Return the columns of a line without colours."""
    text = click.unstyle(line(told(value, **of_record)))
    return tuple(cell.strip() for cell in text.split("  ") if cell.strip())


HEAD = "2026-01-01 13:00:00+01:00"
PLACE = "machines/2@4711"
TEMPERATURE = "temperature 88 (expected 61.2 ± 6)"


LEVEL = aspect("level", 0, 88.0, 61.2, 6.1)
ASPECTS = aspect("kinds", None, np.nan, np.nan, 4.2)
INCIDENT = (
    f"{TEMPERATURE} and 1 more, once in 480 million, major 61.4, "
    "since 2026-01-01 12:59:54+01:00, 1,474 records of the partition"
)
SILENCE = "no record for 240 s, unusual after 186.2 s"
RATE = f"12 records in the last 60 s, 80 to 140 usual, since {HEAD}"


@pytest.mark.parametrize(
    ("value", "what", "who", "detail"),
    [
        (score(), "score", "k", "once in 4, log-likelihood -17.25"),
        (score(p_value=np.nan, log_likelihood=np.nan), "score", "k", "no p-value yet"),
        (anomaly(), "anomaly", "k", f"{TEMPERATURE}, once in 25,000"),
        (incident("opened"), "incident opened", "press-7", INCIDENT),
        (incident("updated"), "incident worsened", "press-7", INCIDENT),
        (incident("closed", entity=None), "incident closed", "k", INCIDENT),
        (entity_event("unusual", 0.00002, LEVEL, ASPECTS), "entity unusual", "press-7",
         "level of temperature 88 (usual 61.2, 6.1 deviations) and 1 more, "
         "once in 50,000 entities"),
        (entity_event("unusual", 0.00002, ASPECTS), "entity unusual", "press-7",
         "kinds of records (4.2 deviations from others), once in 50,000 entities"),
        (entity_event("new", np.nan), "entity new", "press-7", None),
        (silence("began", "press-7"), "silence began", "press-7", SILENCE),
        (silence("ended", None), "silence ended", "k", SILENCE),
        (rate("press-7", None), "rate began", "press-7", RATE),
        (rate("503", "status"), "rate began", "k", f"status = 503: {RATE}"),
        (field(FieldState.VANISHED, "a\x1b"), "field vanished", "k", "a\\x1b"),
        (field(FieldState.TYPE, "a", before="number", now="text"), "field type", "k",
         "a: text in place of number"),
        (field(FieldState.UNIT, "a", factor=1000.0), "field unit", "k",
         "a: level and spread times 1000, perhaps another unit"),
        (events.encode_drift(SOURCE, Change(1.3, 1512)), "drift", "k",
         "records are less likely than before, since about 1,512 records"),
    ],
)  # fmt: skip
def test_a_line_says_when_what_where_of_whom_and_why(value, what, who, detail):
    assert cells(value) == (HEAD, what, PLACE, who, *([detail] if detail else []))


def test_a_message_without_a_key_is_of_nobody():
    assert cells(score(), key=None)[3] == cells(silence("ended", None), key=None)[3] == "-"


@pytest.mark.parametrize(
    ("nats", "usual", "expected", "shown"),
    [
        (8.5, 0.03, "200", "status 503 (0.02 %), others suggest 200 (97 %)"),
        (1.2, 0.0001, None, "status 503 (30 %), others suggest another (100 %)"),
        (40.0, 3.5, "200", "status 503 (under 0.0001 %), others suggest 200 (3 %)"),
        (None, None, "200", "status 503, others suggest 200"),
    ],
)
def test_a_category_has_its_probability(nats, usual, expected, shown):
    item = {"field": "status", "nats": nats, "usual": usual, "category": "503"}
    item |= {} if expected is None else {"expected_category": expected}
    value = orjson.dumps(orjson.loads(anomaly()) | {"contributions": [item]})
    assert cells(value)[4] == f"{shown}, once in 25,000"


def test_a_dead_letter():
    record = Record("machines", 2, 4711, NOON, b"k", b"\xff", (("oslrau-topic", b"mine"),))
    rejection = Rejection(Reason.NOT_UTF8, "invalid start byte at byte 0")
    letter = dead_letter(record, rejection, 10_000)
    found = ("rejected", PLACE, "k", "not_utf8: invalid start byte at byte 0")
    shown = cells(letter.value, headers=letter.headers, timestamp=NOON)
    assert shown == (HEAD, *found)


def test_what_a_message_without_room_left_out():
    record = dead_letter(
        Record("machines", 2, 4711, NOON, b"k", b"{}"), Rejection(Reason.TOO_LARGE, "9 bytes"), 300
    )
    bare = without_largest(record._replace(value=score(), headers=()))
    bare = without_largest(bare._replace(key=None))
    assert bare.value is None
    shown = cells(None, key=None, headers=bare.headers)
    assert shown[1:3] == ("left out", PLACE)
    assert shown[4].endswith("bytes did not fit into the topic")


def test_an_event_of_a_later_version_is_named():
    value = orjson.dumps({"event": "eclipse", **SOURCE, "state": "began", "sun": []})
    assert cells(value) == (HEAD, "eclipse began", PLACE, "k")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "no value"),
        (b"", "0 bytes:"),
        (b"\x00\x1b[2J\xff", r"6 bytes: \x00\x1b[2J\xff"),
        (b'{"topic":"a","offset":2}', '24 bytes: {"topic":"a","offset":2}'),
        (b'{"n_learned": 5}', '16 bytes: {"n_learned": 5}'),
        (score().replace(b"0.25", b'"a"'), None),
        (b"[" * 100_000, None),
    ],
)  # fmt: skip
def test_other_messages_are_described(value, shown):
    found = cells(value)
    assert found[:4] == ("-", "not understood", "alerts/0@1", "k")
    assert shown is None or found[4] == shown
    assert len(found[4]) < 120


@pytest.mark.parametrize("record", [b'{"a": 1e999}', b'{"a":' + b"[" * 399 + b"]" * 399 + b"}"])
def test_whatever_is_in_the_record_of_an_anomaly(record):
    assert cells(anomaly(record), entity="a")[1] == "anomaly"


def test_an_anomaly_is_of_the_entity_that_its_record_names():
    record = b'\n{"machine": {"id": 7}, "temperature": 88.0}'
    assert told(anomaly(record), entity="machine.id").entity == "7"
    assert told(anomaly(record), entity="key").entity == "k"
    assert told(anomaly(b"[1]"), entity="machine.id").entity == "k"


@given(st.text(), st.text(), st.binary())
def test_nothing_that_a_terminal_obeys_is_printed(field, entity, key):
    for value in (incident("opened", entity, fields=[field, "b"]), anomaly(), key, None):
        assert click.unstyle(line(told(value, key=key))).isprintable()


def test_colours_are_those_of_kind_and_severity():
    red = click.style("x", fg="bright_red").split("x")[0]
    assert red in line(told(incident("opened", severity=80.0, name="critical")))
    assert red not in line(told(incident("opened")))


def test_odds_have_two_digits():
    shown = [odds(p) for p in (1.0, 0.4, 0.24, 1 / 4096, 9.99e-7, 1e-12, 0.0, None)]
    assert shown == [
        "usual", "once in 2.5", "once in 4.2", "once in 4,100", "once in 1 million",
        "once in 10^12", "once in 10^300", "no p-value yet",
    ]  # fmt: skip


def test_json_is_the_message_in_one_line():
    def dumped(value, key=None, headers=()):
        return as_json(Record("alerts", 0, 1, None, key, value, headers))

    assert dumped(score()) == score()
    value = dumped(anomaly(b'{"a":\n1e999, "b": "\x7f\xc2\x9b"}'))
    assert value.endswith(b'"record":{"a": 1e999, "b": "\\u007f\\u009b"}}')
    assert orjson.loads(dumped(b"\xff", b"k")) == {
        "key": "k", "value": {"base64": "/w=="}, "headers": [],
    }  # fmt: skip
    letter = orjson.loads(dumped(b"{}", None, (("oslrau-reason", b"no_features"),)))
    assert letter == {"key": None, "value": "{}", "headers": [["oslrau-reason", "no_features"]]}
