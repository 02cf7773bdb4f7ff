"""What the messages of a partition promise, whatever the settings.

They depend on the records alone, not on how these came or on restarts, and tell what a scorer of
the same rows says.
"""

import functools
from itertools import pairwise

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faust_oslrau.app.pipeline import PartitionPipeline, Snapshot
from faust_oslrau.app.settings import LearnerSettings, Settings
from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.topics import Record

N, START, QUARTER = 1500, 1_767_225_600_000, 900_000
BROKEN = 99
"""Every hundredth value is no JSON."""


def _stream():
    """Return rows, machines and records; one machine pauses, and there are faults."""
    rng, number = np.random.default_rng(5), np.arange(N)
    of = number % 5
    of[(of == 3) & (number > 700) & (number < 1000)] = 1
    wave = 6.0 * np.sin(2 * np.pi * number / 96)
    rows = 50.0 + wave[:, None] + 2.0 * of[:, None] + rng.normal(size=(N, 2))
    rows[1200:1230, 1] += 40.0
    rows[1400] = 1e6
    records = []
    for offset, (machine, (a, b)) in enumerate(zip(of.tolist(), rows.tolist(), strict=True)):
        time = START + QUARTER * offset
        service = ("search", "checkout", "batch")[machine % 3]
        document = {"a": a, "b": b, "machine": {"id": machine or None}}
        value = orjson.dumps(document | {"service": service, "at": time // 1000})
        key = b"%d" % machine if machine else None
        value = b"broken" if offset % 100 == BROKEN else value
        records.append(Record("features", 2, offset, time, key, value))
    return rows, of, records


ROWS, OF, RECORDS = _stream()
VALID = np.arange(N) % 100 != BROKEN
TIMES = START + QUARTER * np.arange(N)[VALID]
AB = {"features": ["a", "b"]}
EVERY_EVENT = ["records", "incidents", "silences", "new_entities", "unusual_entities"]
CHOSEN = {
    "plain": AB,
    "small batches": AB | {"batch_size": 32, "alarm_rate": 0.05},
    "found fields": {"kinds": {"at": "ignored"}},
    "transforms": AB | {"transforms": "b=log"},
    "history": AB | {"history": ["10", "90m"]},
    "seasons": AB | {"seasons": "Europe/Berlin"},
    "entities by key": AB | {"entity": "key", "max_entities": 4},
    "entities by field": AB | {"entity": "machine.id", "max_entities": 4},
    "times by field": AB | {"time": "at", "seasons": "UTC"},
    "forecasts": AB | {"forecasts": True, "history": ["10"]},
    "categories alone": {
        "features": ["service"],
        "kinds": {"service": "category"},
        "history": ["10"],
        "forecasts": True,
    },
    "mixtures": AB | {"learner": LearnerSettings(mixtures=True)},
    "all": AB
    | {"entity": "key", "history": ["10"], "seasons": "UTC", "forecasts": True}
    | {"events": EVERY_EVENT, "learner": LearnerSettings(mixtures=True)},
}
MESSAGES = ("scores", "anomalies", "dead_letters", "incidents", "silences", "events", "alerts")


def run(name, cuts=(), *, restart=False):
    """Return what has processed the records in pieces, and all messages by their kind."""
    chosen, found = Settings(**CHOSEN[name]), {kind: [] for kind in MESSAGES}
    pipeline = PartitionPipeline("features", 2, chosen)
    for start, stop in pairwise(sorted({0, *cuts, N})):
        block = pipeline.process(RECORDS[start:stop])
        for kind in MESSAGES:
            found[kind] += getattr(block, kind)
        if restart and pipeline.is_choosing:  # there is no snapshot: the records are read again
            pipeline = PartitionPipeline("features", 2, chosen)
            pipeline.process(RECORDS[:stop])
        elif restart:
            snapshot = pipeline.snapshot(0, stop).to_bytes()
            pipeline = PartitionPipeline.restored(Snapshot.from_bytes(snapshot), chosen)
    return pipeline, found


@functools.cache
def whole(name):
    pipeline, messages = run(name)
    return pipeline.snapshot(0, N).to_bytes(), messages


@pytest.mark.parametrize("name", CHOSEN)
@settings(max_examples=2, deadline=None)
@given(cuts=st.lists(st.integers(0, N), max_size=12), restart=st.booleans())
@example(cuts=[1, 5, 16, 40, 497, 700, 850, 1201, 1203, 1229, 1401], restart=True)
def test_messages_and_snapshots_do_not_depend_on_cuts_and_restarts(name, cuts, restart):
    pipeline, messages = run(name, cuts, restart=restart)
    snapshot, expected = whole(name)
    assert messages == expected
    assert pipeline.snapshot(0, N).to_bytes() == snapshot


def test_no_two_events_have_the_same_id():
    alerts = whole("all")[1]["alerts"]
    assert len({dict(alert.headers)["ce_id"] for alert in alerts}) == len(alerts)


def test_the_records_have_something_for_each_kind_of_message():
    plain, everything = whole("plain")[1], whole("all")[1]
    assert all(plain[kind] for kind in ("scores", "anomalies", "dead_letters"))
    states = {orjson.loads(message.value)["state"] for message in plain["incidents"]}
    assert states == {"opened", "updated", "closed"}
    states = {orjson.loads(message.value)["state"] for message in everything["silences"]}
    assert states == {"began", "ended"}


ALONE = {
    "plain": {}, "transforms": {"transforms": {1: "log"}}, "history": {"history": ("10", "90m")},
    "seasons": {"seasons": "Europe/Berlin"}, "entities by key": {"max_entities": 4},
    "entities by field": {"max_entities": 4}, "times by field": {"seasons": "UTC"},
    "forecasts": {"history": ("10",), "forecasting": True},
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_scores_are_those_of_the_scorer_alone(name):
    keys = [b"%d" % at if at else None for at in OF[VALID]] if name.startswith("ent") else None
    places = np.column_stack([np.arange(N)[VALID], TIMES])
    alone = StreamScorer(OSLRAU(), **ALONE[name]).process(ROWS[VALID], keys, places)
    messages = [orjson.loads(message.value) for message in whole(name)[1]["scores"]]
    assert [message["offset"] for message in messages] == places[:, 0].tolist()
    for member in ("log_likelihood", "p_value", "is_anomaly", "n_learned"):
        told = np.array([message[member] for message in messages], float)
        np.testing.assert_array_equal(told, getattr(alone, member))
    if alone.forecast is not None:
        for member, expected in zip(alone.forecast._fields, alone.forecast, strict=True):
            told = [[field[member] for field in message["forecast"]] for message in messages]
            np.testing.assert_array_equal(np.array(told, float), expected)


SWITCHED = {
    "incidents": ({"events": ["records"]}, {"events": ["records", "incidents"]}, "incidents"),
    "silences": ({"events": ["incidents"]}, {"events": ["incidents", "silences"]}, "silences"),
    "forecasts": ({}, {"forecasts": True}, "expected_fields"),
}


@pytest.mark.parametrize("name", SWITCHED)
def test_what_scores_do_not_depend_on_may_change_at_any_restart(name):
    off, on, told = SWITCHED[name]
    off, on = (Settings(**AB, entity="key", **each) for each in (off, on))
    whole, found = PartitionPipeline("features", 2, on).process(RECORDS), []
    pipeline = PartitionPipeline("features", 2, off)
    for start, stop, after in ((0, 300, on), (300, 1300, off), (1300, N, on)):
        found.append(pipeline.process(RECORDS[start:stop]))
        snapshot = pipeline.snapshot(0, stop).to_bytes()
        pipeline = PartitionPipeline.restored(Snapshot.from_bytes(snapshot), after)
    assert [len(getattr(block, told)) > 0 for block in found] == [False, True, False]
    assert (
        found[1].scores == whole.scores[slice(*np.searchsorted(np.flatnonzero(VALID), (300, 1300)))]
    )


@pytest.mark.parametrize("name", ["history", "seasons"])
def test_scores_depend_on_the_time_stamps(name):
    slower = [record._replace(timestamp=10 * record.timestamp) for record in RECORDS]
    block = PartitionPipeline("features", 2, Settings(**CHOSEN[name])).process(slower)
    assert block.scores != whole(name)[1]["scores"]
