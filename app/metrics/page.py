"""The page of metrics, made in steps: a worker with many partitions has ten thousands of series."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector


async def metrics_page(registry: Collector) -> bytes:
    """Return the page in Prometheus's text format; other work goes on meanwhile.

    The series of one metric are of one moment, those of two may have some batches between them.
    """
    pieces = []
    for metric in registry.collect():  # makes one at a time
        pieces.append(await asyncio.to_thread(generate_latest, _Alone(metric)))
    return b"".join(pieces)


class _Alone(Collector):
    """One metric, which no thread but the one that writes it down can see."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric
