"""What the anomalies topic tells a worker of earlier incidents, whoever has written to it."""

from __future__ import annotations

import json


def _nested(levels):
    return [_nested(levels - 1)] if levels else []


_STRANGE = [
    {},  # without a state, see below
    {"opened_timestamp": "now"},
    {"offset": 2**70},
    {"contributions": [None]},
    {"note": _nested(300)},  # what can be read, but not be written
]


def test_a_worker_passes_over_what_only_looks_like_an_incident(
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
