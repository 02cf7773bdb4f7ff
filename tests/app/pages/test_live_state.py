"""What the page for people is told each second."""

import json
import math
from dataclasses import replace

import orjson
import pytest
from memory_worker import FIRST, SECOND, values

from faust_oslrau.app.metrics.history import SECONDS, Noted
from faust_oslrau.app.pages.field_course import field_course
from faust_oslrau.app.pages.live_state import LiveState
from faust_oslrau.learner import ChangedRate, SilentEntity
from faust_oslrau.topics import OutMessage


@pytest.fixture
def look(joined, worker, clock):
    """A function that asks for the state of some partitions, of all unless told otherwise."""

    live = LiveState(joined)

    async def look(*chosen, since=0):
        held = worker.held
        return await live.since(since, [held[tp] for tp in chosen or sorted(held)], None)

    return look


def _noted(moment, offset, key=None):
    value = orjson.dumps({"offset": offset})
    return Noted(moment, OutMessage(offset, key, value, None))


def _told(found):
    async def ask(most):
        return [found]

    return ask


def _parsed(fragments):
    """The messages, which the state holds as JSON."""
    return orjson.loads(orjson.dumps(fragments))


async def test_each_second_is_told_once_and_only_when_it_is_over(worker, look, clock):
    await worker.assign(FIRST, SECOND)
    begin = int(clock.now)
    await worker.read(FIRST, 100)
    assert (await look())["seconds"]["scored"] == []
    clock.now += 1
    await worker.read(FIRST, 50)
    first = await look()
    assert (first["since"], first["until"]) == (begin, begin + 1)
    assert first["seconds"]["scored"] == [100]
    clock.now += 2
    second = await look(since=first["until"])
    assert (second["since"], second["until"]) == (begin + 1, begin + 3)
    assert second["seconds"]["scored"] == [50, 0]
    assert (await look(since=second["until"]))["seconds"]["scored"] == []


async def test_no_more_is_told_than_is_known(worker, look, clock):
    await worker.assign(FIRST)
    begin = int(clock.now)
    clock.now += 10
    assert (await look(since=-(10**9)))["since"] == begin  # before that the worker was not there
    future = await look(since=10**12)
    assert future["since"] == future["until"] == begin + 10
    assert future["seconds"]["scored"] == []
    clock.now += 10 * SECONDS
    state = await look()
    assert state["until"] - state["since"] == SECONDS
    assert {len(column) for column in state["seconds"].values()} == {SECONDS}


@pytest.mark.parametrize("seconds", [5, 100, 10_000])
async def test_after_the_clock_is_set_back_work_is_shown_at_once(seconds, worker, look, clock):
    (partition,) = await worker.assign(FIRST)
    for _ in range(20):
        await worker.read(FIRST, 5)
        partition.set_lag(50)
        clock.now += 1
    partition.metrics.history.incidents.add(_incident(5, "closed"), clock.now - 1)
    before = await look()
    clock.set_back = seconds
    for _ in range(3):
        await worker.read(FIRST, 7)
        partition.set_lag(30)
        last = await look(since=before["until"])
        clock.now += 1
    for state in (await look(since=last["until"] - 2), await look()):
        assert state["until"] == before["until"] - seconds + 3
        assert state["seconds"]["scored"][-2:] == [7, 7]
        assert state["seconds"]["lag"][-2:] == [30, 30]
    course = await field_course(partition, "a", 0)
    assert course["times"][-2:] == [state["until"] - 2, state["until"] - 1]
    assert len(_parsed((await look())["incidents"])) == 1


async def test_scores_are_summed_up_by_their_quantiles_and_the_lowest(worker, look, clock):
    await worker.first_read(200)
    clock.now += 2
    await worker.read(FIRST, 50)
    clock.now += 1
    seconds = (await look())["seconds"]
    lowest, low, median, high = (seconds[name][0] for name in ("lowest", "low", "median", "high"))
    scores = [orjson.loads(score)["log_likelihood"] for score in worker.broker.scores[FIRST]]
    assert lowest == min(score for score in scores[:200] if score is not None)
    assert lowest < low < median < high
    assert (seconds["low"][1], seconds["median"][1]) == (None, None)
    assert math.isnan(seconds["lowest"][1])


async def test_records_learned_again_count_apart(worker, look, clock):
    (partition,) = await worker.assign(FIRST)
    partition.emit_from = 100
    await worker.read(FIRST, 150)
    clock.now += 1
    seconds = (await look())["seconds"]
    assert (seconds["replayed"], seconds["scored"]) == ([100], [50])


async def test_the_lag_is_unknown_until_it_is_known_of_all(worker, look, clock):
    first, second = await worker.assign(FIRST, SECOND)
    first.set_lag(5)
    clock.now += 1
    second.set_lag(7)
    clock.now += 2
    assert [str(lag) for lag in (await look())["seconds"]["lag"]] == ["nan", "12.0", "12.0"]
    assert (await look(FIRST))["seconds"]["lag"] == [5, 5, 5]


async def test_anomalies_and_events_come_once_and_oldest_first(worker, look, clock):
    first, second = await worker.assign(FIRST, SECOND)
    begin = int(clock.now)
    late = _noted(begin + 1.5, 3, b"\xff")
    first.metrics.history.anomalies.extend([_noted(begin + 0.2, 1, b"machine 1"), late])
    second.metrics.history.anomalies.append(_noted(begin + 0.1, 2))
    second.metrics.history.events.append(_noted(begin + 0.1, 9))
    clock.now += 1.7  # the second in which the last one came is not over
    state = await look()
    shown = [(found["offset"], found["key"]) for found in _parsed(state["anomalies"])]
    assert shown == [(2, None), (1, "machine 1")]
    assert [found["offset"] for found in _parsed(state["events"])] == [9]
    assert [found["offset"] for found in _parsed((await look(SECOND))["anomalies"])] == [2]
    clock.now += 1
    later = await look(since=state["until"])
    (last,) = _parsed(later["anomalies"])
    assert (last["offset"], last["key"]) == (3, "\N{REPLACEMENT CHARACTER}")
    assert later["events"] == []


async def test_an_anomaly_whose_record_few_readers_take_is_shown_as_it_is(worker, look, clock):
    record = b'{"a":1e6,"b":-1e6,"far":1e400,"deep":' + b"[" * 399 + b"]" * 399 + b"}"
    worker.broker.logs[FIRST] = [*values(1000), record]
    await worker.first_read()
    clock.now += 1
    state = await look()
    last = json.loads(orjson.dumps(state["anomalies"]))[-1]
    assert (last["offset"], last["is_anomaly"]) == (1000, True)
    assert last["record"] == json.loads(record)
    assert state["seconds"]["anomalies"] == [len(state["anomalies"])]


async def test_only_the_last_anomalies_are_told_and_no_more_than_fit(worker, look, clock):
    await worker.assign(FIRST, SECOND)
    begin = int(clock.now)
    for number, partition in enumerate(worker.held.values()):
        for i in range(50):
            offset = 2 * i + number
            partition.metrics.history.anomalies.append(_noted(begin + offset / 200, offset))
    clock.now += 1
    assert [a["offset"] for a in _parsed((await look())["anomalies"])] == list(range(50, 100))
    value = b'{"a":"%s"}' % (b"x" * 100_000)
    large = Noted.of(begin + 0.9, OutMessage(100, b"k" * 10**6, value, None))
    worker.held[FIRST].metrics.history.anomalies.extend([large] * 10)
    anomalies = (await look())["anomalies"]
    assert len(_parsed(anomalies)) == 2
    assert len(orjson.dumps(anomalies)) < 256 * 1024


def _incident(offset, state="opened", **more):
    return {
        "incident": f"features/0/{offset}", "offset": offset, "state": state,
        "opened_timestamp": None, **more,
    }  # fmt: skip


async def test_an_incident_is_told_again_when_there_is_news_of_it(worker, look, clock):
    first, second = await worker.assign(FIRST, SECOND)
    known = first.metrics.history.incidents
    known.add(_incident(5), clock.now)
    known.add(_incident(2, "closed"), clock.now)
    clock.now += 1
    state = await look()
    found = _parsed(state["incidents"])
    assert [(each["offset"], each["state"]) for each in found] == [(5, "opened"), (2, "closed")]
    assert found[0]["since"] == found[0]["noted"] == clock.now - 1
    assert (await look(SECOND))["incidents"] == []
    assert (await look(since=state["until"]))["incidents"] == []
    known.add({**_incident(5, "closed"), "offset": 9}, clock.now)
    second.metrics.history.add_past_incidents([_incident(7, incident="features/1/7")])
    clock.now += 1
    news = _parsed((await look(since=state["until"]))["incidents"])
    assert [each["offset"] for each in news] == [7, 9]


async def test_no_more_incidents_are_told_than_fit(worker, look, clock):
    await worker.assign(FIRST, SECOND)
    for partition in worker.held.values():
        for offset in range(50):
            event = _incident(offset, contributions=[{"field": "f" * 15_000}])
            partition.metrics.history.incidents.add(event, clock.now)
    clock.now += 1
    told = (await look())["incidents"]
    assert 10 < len(told) < 30
    assert len(orjson.dumps(told)) < 300_000


SAW, PRESS = SilentEntity("saw", 2000, 3.5), SilentEntity("press", 1000, 3.5)
SLOW, OFTEN = ChangedRate("saw", None, 2000, 0.5), ChangedRate("503", "status", 1000, 5.0)


@pytest.mark.parametrize(
    ("name", "asked", "setting", "told", "first", "second"),
    [
        ("silent", "silent_entities", {"events": ["silences"]}, (SAW, PRESS),
         {"entity": "press", "last_timestamp": 1000, "limit": 3.5},
         {"entity": "saw", "last_timestamp": 2000, "limit": 3.5}),
        ("rates", "changed_rates", {"rates": "1m"}, (SLOW, OFTEN),
         {"entity": "503", "by": "status", "since": 1000, "factor": 5.0},
         {"entity": "saw", "by": None, "since": 2000, "factor": 0.5}),
    ],
)  # fmt: skip
async def test_what_has_lasted_for_longest_comes_first(
    name, asked, setting, told, first, second, worker, look, joined
):
    held = await worker.assign(FIRST, SECOND)
    joined.settings = replace(joined.settings, entity="key")
    assert (await look())[name] is None  # without the setting
    joined.settings = replace(joined.settings, **setting)
    assert (await look())[name] == []
    for partition, found in zip(held, told, strict=True):
        setattr(partition, asked, _told(found))
    assert (await look())[name] == [SECOND._asdict() | first, FIRST._asdict() | second]


async def test_entities_with_the_most_anomalies_come_first_for_a_while(worker, look, clock, joined):
    (partition,) = await worker.assign(FIRST)
    assert (await look())["entities"] is None  # without the setting
    joined.settings = replace(joined.settings, entity="key")
    history = partition.metrics.history
    history.alarming += [(clock.now, name) for name in ("saw", "press", "press")]
    history.entity_events.append(_noted(clock.now, 7))
    clock.now += 1
    found = (await look())["entities"]
    assert [(each["entity"], each["anomalies"], each["partition"])
            for each in found["alarming"]] == [("press", 2, 0), ("saw", 1, 0)]  # fmt: skip
    assert [event["offset"] for event in _parsed(found["events"])] == [7]
    clock.now += SECONDS + 1
    assert (await look())["entities"] == {"alarming": [], "events": []}
