"""The page of metrics of a worker with many partitions."""

import asyncio
import time

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from faust_oslrau.app.metrics import Metrics, accepted, metrics_page
from faust_oslrau.app.metrics.page import OPENMETRICS, PROMETHEUS


def _registry(partitions):
    """Return that of a worker whose partitions have each scored something."""
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    for number in range(partitions):
        partition = metrics.of_partition("features", number)
        partition.p_value.observe(np.array([0.0, float(number)]))
        partition.records["scored"] += 2
    return registry


def _own(page):
    """Leave out the numbers of the process, which change from page to page."""
    return [line for line in page.splitlines() if b"oslrau_" in line]


@pytest.mark.parametrize(
    ("written", "expected"),
    [(PROMETHEUS, generate_latest), (OPENMETRICS, generate_openmetrics)],
    ids=["Prometheus", "OpenMetrics"],
)
def test_it_holds_what_prometheus_own_functions_write(written, expected):
    registry = _registry(20)
    page = asyncio.run(metrics_page(registry, written))
    assert _own(page) == _own(expected(registry))
    assert page.count(b'oslrau_records_total{outcome="scored"') == 20
    assert page.count(b"# EOF") == page.endswith(b"\n# EOF\n") == (written is OPENMETRICS)


@pytest.mark.parametrize(
    ("accept", "written"),
    [
        ("", PROMETHEUS),
        ("*/*", PROMETHEUS),
        ("text/plain;version=0.0.4", PROMETHEUS),
        ("application/openmetrics-text;version=0.0.1", PROMETHEUS),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", OPENMETRICS),
        ("application/openmetrics-text;q=0,text/plain", PROMETHEUS),
        ("application/openmetrics-text; q=0.0", PROMETHEUS),
        ("application/openmetrics-text;q=0.4,text/plain;q=0.5", PROMETHEUS),
        ("*/*,application/openmetrics-text;version=1.0.0;q=0.5", PROMETHEUS),
        (  # of Prometheus 3
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
            "application/openmetrics-text;version=0.0.1;q=0.5,"
            "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
            "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            OPENMETRICS,
        ),
    ],
)
def test_a_reader_gets_the_format_that_it_asks_for(accept, written):
    assert accepted(accept) is written


def test_other_work_goes_on_while_it_is_made():
    registry = _registry(200)

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
