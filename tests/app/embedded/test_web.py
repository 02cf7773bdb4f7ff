"""What the worker's pages answer."""

from __future__ import annotations

import json
import time
import urllib.request

import numpy as np
import orjson
import pytest


@pytest.fixture
def worker(topics, client, start_worker, topic_name):
    """A worker that has done 1,300 records of partition 0 and 2 broken ones of partition 1."""
    rows = np.random.default_rng(0).normal(size=(1300, 2)).tolist()
    client.send(topic_name, [(0, orjson.dumps({"a": a, "b": b})) for a, b in rows])
    client.send(topic_name, [(1, b"broken")] * 2)
    return start_worker().wait_ready().wait_records(1302)


def _json(worker, page):
    status, text = worker.get(page)
    assert status == 200, text
    return json.loads(text)


def test_structures_are_given_by_partition(worker, topic_name):
    worker.wait_until(lambda: worker.model()[0]["nodes"] != {}, "aware of the network")
    first, second = worker.model()
    outline = _json(worker, f"/model?topic={topic_name}&partition=0")
    assert (outline["topic"], outline["partition"]) == (topic_name, 0)
    assert outline["fields"] == first["fields"] == ["a", "b"]
    assert len(outline["kind"]) == sum(first["nodes"].values())
    dot = worker.get(f"/model?topic={topic_name}&partition=0&format=dot")[1]
    assert dot.startswith("digraph") and dot.count("->") == first["edges"]
    assert worker.get("/model?format=dot")[1] == dot  # the first partition that has a network
    assert second["records"] == 0
    for nothing in ("partition=1", "partition=7", "topic=another"):
        assert worker.get(f"/model?{nothing}")[0] == 404


def test_the_live_state_comes_in_parts_that_fit_together(worker):
    def done():
        seconds = _json(worker, "/live")["seconds"]
        return (sum(seconds["scored"]), sum(seconds["rejected"])) == (1300, 2)

    worker.wait_until(done, "showing all in whole seconds")
    whole = _json(worker, "/live")
    assert len(whole["seconds"]["scored"]) == whole["until"] - whole["since"]
    assert whole["waiting_for"] is None and len(whole["partitions"]) == 2
    assert sum(_json(worker, "/live?partition=1")["seconds"]["scored"]) == 0
    later = _json(worker, f"/live?since={whole['until']}")
    assert later["since"] == whole["until"] <= later["until"]
    assert _json(worker, f"/live?since={int(time.time()) + 10**9}")["seconds"]["scored"] == []
    assert worker.get("/live?since=yesterday")[0] == 400


def test_an_anomaly_whose_record_hardly_any_reader_takes_is_shown_as_it_is(
    worker, client, topic_name
):
    record = b'{"a":1e9,"b":1e9,"far":1e400,"deep":' + b"[" * 399 + b"]" * 399 + b"}"
    client.send(topic_name, [(0, record)])
    worker.wait_records(1303)
    worker.wait_until(
        lambda: worker.get("/live")[0] != 200 or "1e400" in worker.get("/live")[1],
        "showing the anomaly",
    )
    shown = _json(worker, "/live")["anomalies"][-1]
    assert (shown["offset"], shown["is_anomaly"], shown["key"]) == (1300, True, None)
    assert shown["record"] == json.loads(record)


def test_the_page_comes_with_a_strict_policy_and_no_other_file(worker):
    with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/") as answer:
        policy, text = answer.headers["Content-Security-Policy"], answer.read().decode()
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert worker.get("/page/main.js")[0] == 200
    for name in ("nothing.js", "..%2fweb.py", "..%2f..%2fpyproject.toml"):
        assert worker.get(f"/page/{name}")[0] == 404
    assert "http://" not in text and "https://" not in text
