"""The page of metrics, created in steps, as many partitions have tens of thousands of series."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector


async def metrics_page(registry: Collector) -> bytes:
    """Return the page in Prometheus's text format without blocking the event loop for long.

    The series of one metric are consistent; between two metrics batches may be processed.
    """
    pieces = []
    for metric in registry.collect():  # a generator: one metric at a time
        pieces.append(await asyncio.to_thread(generate_latest, _Alone(metric)))
    return b"".join(pieces)


class _Alone(Collector):
    """A collector of a single metric, for the thread that formats it."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric
