"""What the anomalies topic tells a worker of earlier incidents, whoever has written to it."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

from faust.types import TP

from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.partitions import past_incidents


def _nested(levels):
    return [_nested(levels - 1)] if levels else []


_STRANGE = [
    {},  # without a state, see below
    {"opened_timestamp": "now"},
    {"offset": 2**70},
    {"contributions": [None]},
    {"note": _nested(300)},  # what can be read, but not be written
]


def test_what_only_looks_like_an_incident_is_none(
    topics, client, settings, start_worker, topic_name
):
    event = {
        "event": "incident",
        **{"topic": topic_name, "partition": 0, "offset": 7, "opened_timestamp": 1000},
        **{"incident": "written by a worker", "state": "opened"},
    }
    strange = [{**event, "incident": str(change), **change} for change in _STRANGE]
    del strange[0]["state"]
    found = [json.dumps(each).encode() for each in (event, *strange)]
    client.send(settings.anomalies_topic, [(0, value) for value in found])
    worker = start_worker().wait_ready()

    def told():
        return [each["incident"] for each in worker.content("/live").get("incidents", [])]

    worker.wait_until(told, "aware of the past")
    assert told() == ["written by a worker"]


def test_an_incident_of_long_ago_is_found_among_others(
    topics, client, settings, topic_name, monkeypatch
):
    """Events of two sources; some were written twice, after a crash."""
    monkeypatch.setattr(past_incidents, "_MAX_BYTES", 4000)
    monkeypatch.setattr(past_incidents, "_FIND_SECONDS", 60.0)

    def event(offset, topic=topic_name, **members):
        told = {"event": "record", "topic": topic, "partition": 0, "offset": offset, **members}
        return json.dumps(told).encode()

    def incident(opened, offset, state):
        told = {"incident": f"{topic_name}/0/{opened}", "state": state, "opened_timestamp": None}
        return event(offset, event="incident", **told)

    values = [event(offset) for offset in range(0, 4000, 10)]
    values[101:101] = [incident(1000, 1000, "opened"), incident(1000, 1004, "updated")]
    values[110:110] = [incident(1000, 1060, "closed")]
    values[120:120] = values[95:120]
    values = [each for value in values for each in (value, event(7, "other"))]
    values.append(incident(3990, 3990, "opened"))
    client.send(settings.anomalies_topic, [(0, value) for value in values])

    async def found(opened):
        past = past_incidents.PastIncidents(settings, client_arguments(settings))
        async with aclosing(past):
            return await past.find(TP(topic_name, 0), f"{topic_name}/0/{opened}", opened)

    states = {opened: asyncio.run(found(opened)) for opened in (1000, 3990, 1001, 5000)}
    assert {opened: each and each["state"] for opened, each in states.items()} == {
        1000: "closed", 3990: "opened", 1001: None, 5000: None
    }  # fmt: skip
