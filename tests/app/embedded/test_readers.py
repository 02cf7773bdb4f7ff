"""A worker whose pages many clients ask for."""

import http.client
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest

_SECONDS = 3.0
# Of one CPU, for everything that a worker does that has no records to score.
_SHARE = 0.2
_PAGES = ("/live", "/live?since=1", "/model", "/model?partition=0", "/metrics", "/", "/nothing")


@pytest.fixture
def worker(topics, client, start_worker, topic_name):
    """A worker that has scored 2,000 records."""
    rows = [(i % 2, orjson.dumps({"a": i % 7, "b": i % 5 + i / 1000})) for i in range(2000)]
    client.send(topic_name, rows)
    return start_worker().wait_ready().wait_records(2000)


def _cpu_seconds(worker):
    """Return the CPU time that the worker has used."""
    fields = Path(f"/proc/{worker.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _hammer(port, page, end):
    """Ask for a page again and again, and return how often there was an answer."""
    connection, answers = http.client.HTTPConnection("127.0.0.1", port, timeout=30), 0
    while time.monotonic() < end:
        connection.request("GET", page)
        response = connection.getresponse()
        response.read()
        answers += response.status in (200, 404)
    connection.close()
    return answers


def test_clients_that_ask_all_the_time_take_a_small_share_of_a_cpu(worker):
    with ThreadPoolExecutor(8) as clients:
        before, began = _cpu_seconds(worker), time.monotonic()
        asked = [_PAGES[i % len(_PAGES)] for i in range(8)]
        end = began + _SECONDS
        answers = list(clients.map(lambda page: _hammer(worker.port, page, end), asked))
        share = (_cpu_seconds(worker) - before) / (time.monotonic() - began)
    assert all(answers)  # none is left out
    assert share < _SHARE
