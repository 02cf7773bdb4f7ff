"""The page of metrics of a worker with many partitions."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from faust_oslrau.app.metrics import Metrics, metrics_page


@pytest.fixture
def registry():
    """Of a worker with 200 partitions, each of which has scored something."""
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    for number in range(200):
        partition = metrics.of_partition("features", number)
        partition.p_value.observe(np.array([-1.0, float(number)]))
        partition.records["scored"] += 2
    return registry


def _own(page):
    """Leave out the numbers of the process, which change from page to page."""
    return [line for line in page.splitlines() if b"oslrau_" in line]


def test_it_holds_what_prometheus_own_function_writes(registry):
    page = asyncio.run(metrics_page(registry))
    assert _own(page) == _own(generate_latest(registry))
    assert page.count(b'oslrau_records_total{outcome="scored"') == 200


def test_other_work_goes_on_while_it_is_made(registry):
    async def make():
        making, longest = asyncio.create_task(metrics_page(registry)), 0.0
        began = last = time.perf_counter()
        while not making.done():
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        return longest, last - began

    # Made at once it would be all of the time; the machine may stop everybody now and then.
    shares = [longest / total for longest, total in (asyncio.run(make()) for _ in range(5))]
    assert min(shares) < 0.5
