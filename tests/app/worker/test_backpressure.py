"""A slow model slows the worker down, and does nothing else to it."""

import re
from pathlib import Path

import numpy as np
import orjson
import pytest

pytestmark = pytest.mark.real_kafka

_PARTITIONS = 4
# 400 MB: what a busy worker holds of them, up to 130 MB, is less than half.
_RECORDS = 50_000
_AT_A_TIME = 5_000


def _fill(client, topic, values):
    """Fill a topic with these values, again and again, and return its size in bytes."""
    client.create(topic, _PARTITIONS)
    for first in range(0, _RECORDS, _AT_A_TIME):
        numbers = range(first, first + _AT_A_TIME)
        client.send(topic, [(i % _PARTITIONS, values[i % len(values)]) for i in numbers])
    return _RECORDS * len(values[0])


def _memory(worker, name):
    """Return the process's memory in bytes, as Linux tells it."""
    status = Path(f"/proc/{worker.pid}/status").read_text()
    return 1024 * int(re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)[1])


def _check(worker, begun, at_first, waiting):
    """Most of the records wait, in the log and not in the worker, which is well.

    That is as soon as some, ``begun``, are seen to be done with: a busy test may look late again.
    """
    seen = []
    done = lambda: seen.append(worker.metric("oslrau_records_total") or 0) or seen[-1] >= begun  # noqa: E731
    worker.wait_until(done, f"done with {begun} records")
    assert seen[-1] < 0.5 * _RECORDS
    assert _memory(worker, "VmHWM") - at_first < 0.5 * waiting
    assert worker.get("/readyz")[0] == 200
    assert worker.metric("oslrau_rebalances_total") == 1


def test_with_a_slow_model_records_wait_in_the_log(client, start_worker, topic_name):
    rows = np.random.default_rng(0).normal(size=(64, 500)).round(6).tolist()
    values = [orjson.dumps({f"f{n:03}": x for n, x in enumerate(row)}) for row in rows]
    waiting = _fill(client, topic_name, values)
    # The model itself takes little memory, and time for its 500 fields.
    small = {
        "learner_max_nodes": 600,
        "learner_oslrau": "max_leaf_vars=1,background=false",
    }  # fmt: skip
    worker = start_worker(**small).wait_ready()
    at_first = _memory(worker, "VmRSS")
    _check(worker, 5_000, at_first, waiting)
