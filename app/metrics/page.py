"""The page of metrics, created in steps, as many partitions have tens of thousands of series."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
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


_PLAIN = ("text/plain", "text/*", "*/*")
_WEIGHT = re.compile(r";\s*q\s*=\s*([01](?:\.\d*)?)\s*(?:;|$)", re.IGNORECASE)


def accepted(accept: str) -> Format:
    """Return the format that a reader asks for by its header Accept, by the weights in it."""
    entries = accept.split(",")
    plain = [entry for entry in entries if entry.partition(";")[0].strip().lower() in _PLAIN]
    wanted = _most_weight(filter(_is_openmetrics, entries))
    return OPENMETRICS if wanted and wanted >= _most_weight(plain) else PROMETHEUS


def _is_openmetrics(entry: str) -> bool:
    _, media_type = choose_encoder(entry)
    return media_type.startswith("application/openmetrics-text")


def _most_weight(entries: Iterable[str]) -> float:
    found = map(_WEIGHT.search, entries)
    return max((1.0 if weight is None else float(weight[1]) for weight in found), default=0.0)


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
