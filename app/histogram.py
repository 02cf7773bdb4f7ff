"""A Prometheus histogram that takes a whole array of rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector


class RowHistogram(Collector):
    """Counts rows in buckets, by the label values of their series.

    Parameters
    ----------
    name, documentation
        As of every metric.
    labels
        Names of the labels.
    bounds
        Upper bounds of the buckets, ascending, without the infinite one.
    registry
        Where the histogram is exposed.
    """

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        bounds: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._bounds = np.asarray(bounds, dtype=np.float64)
        self._names = [*map(str, map(float, bounds)), "+Inf"]
        self._series: dict[tuple[str, ...], _Series] = {}
        registry.register(self)

    def observe(self, labels: tuple[str, ...], values: NDArray[np.float64]) -> None:
        """Count values; NaN counts for nothing."""
        known = values[~np.isnan(values)]
        series = self._series.setdefault(labels, _Series(len(self._names)))
        # A value on a bound belongs below it, as Prometheus has it.
        buckets = np.searchsorted(self._bounds, known, side="left")
        series.counts += np.bincount(buckets, minlength=len(self._names))
        series.sum += float(known.sum())

    def remove(self, labels: tuple[str, ...]) -> None:
        """Take a series away."""
        self._series.pop(labels, None)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield the histogram with all its series."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for labels, series in self._series.items():
            counts = np.cumsum(series.counts).tolist()
            buckets = list(zip(self._names, counts, strict=True))
            family.add_metric(labels, buckets, series.sum)
        yield family


class _Series:
    __slots__ = ("counts", "sum")

    def __init__(self, buckets: int) -> None:
        self.counts: NDArray[np.int64] = np.zeros(buckets, dtype=np.int64)
        self.sum = 0.0
