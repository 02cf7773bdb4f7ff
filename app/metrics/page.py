"""The page of metrics, created in steps, as many partitions have tens of thousands of series."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector


class Format(NamedTuple):
    """How metrics are written: the media type, the encoder, and what ends a page."""

    media_type: str
    encode: Callable[[Collector], bytes]
    end: bytes


PROMETHEUS = Format(CONTENT_TYPE_LATEST, generate_latest, b"")
OPENMETRICS = Format(openmetrics.CONTENT_TYPE_LATEST, openmetrics.generate_latest, b"# EOF\n")


def accepted(accept: str) -> Format:
    """Return the format that a reader asks for by its header Accept."""
    _, media_type = choose_encoder(accept)
    return OPENMETRICS if media_type.startswith("application/openmetrics-text") else PROMETHEUS


async def metrics_page(registry: Collector, written: Format = PROMETHEUS) -> bytes:
    """Return the page without blocking the event loop for long.

    The series of one metric are consistent; between two metrics batches may be processed.
    """
    pieces = []
    for metric in registry.collect():  # a generator: one metric at a time
        piece = await asyncio.to_thread(written.encode, _Alone(metric))
        pieces.append(piece.removesuffix(written.end))
    return b"".join([*pieces, written.end])


class _Alone(Collector):
    """A collector of a single metric, for the thread that formats it."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric
