"""The worker's metrics for Prometheus, on a registry that is handed in.

All of them count rows, once per batch. Faust's own Prometheus sensor is left out: it would see
one message per batch, gives offsets under the names of counts, and keeps series of partitions
that moved away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.process_collector import ProcessCollector

from .histogram import RowHistogram
from .partition import ProcessedBlock

_Metric = TypeVar("_Metric", bound=MetricWrapperBase)
_PARTITION = ("topic", "partition")
# From a row's share of a fast batch to a structure change of a large network.
_STAGE_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
# From one broker round trip to a worker that catches up after a night.
_END_TO_END_SECONDS = (
    *(0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200),
)
# A few nats a field are usual; the tail holds anomalies, densities of tight data are positive.
_LOG_LIKELIHOOD_NATS = (
    *(-10_000, -1000, -500, -200, -100, -50, -20, -10, -5, 0, 5, 10, 20, 50, 100, 200, 500),
)
# Weight of the past in the recent mean after this many rows: 1/e.
_RECENT_ROWS = 1000


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """Size of a partition's network, and the changes of its structure so far."""

    nodes: Mapping[str, int]
    edges: int
    parameters: int
    depth: int
    structure_changes: Mapping[str, int]


class Metrics:
    """The metrics of all partitions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        ProcessCollector(registry=registry)
        self.records = self._counter("records", "Records by what became of them.", "outcome")
        self.learned = self._counter("learned_records", "Records that the model learned.")
        self.anomalies = self._counter("anomalies", "Anomalous records.")
        self.dead_letters = self._counter("dead_letters", "Rejected records.", "reason")
        self.missing = self._counter(
            "missing_offsets",
            "Offsets that the log lacks: compaction, retention, transactions' marks.",
        )
        self.nodes = self._gauge("network_nodes", "Nodes of the network.", "kind")
        self.edges = self._gauge("network_edges", "Edges of the network.")
        self.parameters = self._gauge("network_parameters", "Free parameters of the network.")
        self.depth = self._gauge("network_depth", "Nodes on the longest way to a leaf.")
        self.changes = self._counter("structure_changes", "Changes of the structure.", "kind")
        self.mean = self._gauge("log_likelihood_mean", "Mean log-likelihood of recent records.")
        self.lag = self._gauge("consumer_lag_records", "Records that wait in the log.")
        self.snapshot_age = self._gauge(
            "snapshot_age_seconds", "Time since a snapshot held all that was processed."
        )
        self.snapshot_bytes = self._gauge("snapshot_bytes", "Size of the last snapshot.")
        self.snapshot_offset = self._gauge(
            "snapshot_offset", "Offset from which a restart would go on."
        )
        self.stage = Histogram(
            "oslrau_stage_seconds",
            "Time that a batch of records, or a snapshot, took in a stage.",
            [*_PARTITION, "stage"],
            buckets=_STAGE_SECONDS,
            registry=registry,
        )
        self.log_likelihood = self._rows(
            "log_likelihood", "Log-likelihood of scored records in nats.", _LOG_LIKELIHOOD_NATS
        )
        self.end_to_end = self._rows(
            "end_to_end_seconds",
            "Time from a record's timestamp to the acknowledgement of its score.",
            _END_TO_END_SECONDS,
        )

    def of_partition(self, topic: str, partition: int) -> PartitionMetrics:
        """Return the metrics of one partition."""
        return PartitionMetrics(self, (topic, str(partition)))

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        names = [*_PARTITION, *labels]
        return Counter(f"oslrau_{name}", documentation, names, registry=self.registry)

    def _gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        names = [*_PARTITION, *labels]
        return Gauge(f"oslrau_{name}", documentation, names, registry=self.registry)

    def _rows(self, name: str, documentation: str, bounds: tuple[float, ...]) -> RowHistogram:
        return RowHistogram(f"oslrau_{name}", documentation, _PARTITION, bounds, self.registry)


class PartitionMetrics:
    """The metrics of one partition, removed from the registry when it moves away."""

    def __init__(self, metrics: Metrics, labels: tuple[str, str]) -> None:
        self._metrics = metrics
        self._labels = labels
        self._series: dict[tuple[MetricWrapperBase, tuple[str, ...]], Any] = {}
        self._mean = float("nan")
        self._changes: dict[str, int] = {}
        for outcome in ("scored", "rejected", "replayed"):
            self._of(metrics.records, outcome)
        for counter in (metrics.learned, metrics.anomalies, metrics.missing):
            self._of(counter)

    def count_replayed(self, block: ProcessedBlock) -> None:
        """Count records that were learned again but whose outputs exist."""
        rows = len(block.scores) + len(block.dead_letters)
        self._of(self._metrics.records, "replayed").inc(rows)
        self._count_work(block)

    def count_emitted(self, block: ProcessedBlock, seconds: NDArray[np.float64]) -> None:
        """Count records whose outputs are acknowledged, `seconds` after their timestamps."""
        metrics = self._metrics
        self._of(metrics.records, "scored").inc(len(block.scores))
        self._of(metrics.records, "rejected").inc(len(block.dead_letters))
        self._of(metrics.anomalies).inc(len(block.anomalies))
        for reason, count in block.reasons.items():
            self._of(metrics.dead_letters, reason).inc(count)
        metrics.log_likelihood.observe(self._labels, block.log_likelihood)
        metrics.end_to_end.observe(self._labels, seconds)
        self._count_work(block)
        self._update_mean(block.log_likelihood)

    def count_missing(self, offsets: int) -> None:
        """Count offsets that the log lacks."""
        self._of(self._metrics.missing).inc(offsets)

    def set_lag(self, records: int) -> None:
        """Say how many records wait in the log."""
        self._of(self._metrics.lag).set(records)

    def set_snapshot(self, offset: int, size: int) -> None:
        """Say what the last snapshot is."""
        self._of(self._metrics.snapshot_offset).set(offset)
        self._of(self._metrics.snapshot_bytes).set(size)

    def set_snapshot_age(self, seconds: float) -> None:
        """Say for how long there have been records that no snapshot holds."""
        self._of(self._metrics.snapshot_age).set(seconds)

    def observe_stage(self, stage: str, seconds: float) -> None:
        """Say what a stage took."""
        self._of(self._metrics.stage, stage).observe(seconds)

    def set_network(self, size: NetworkSize) -> None:
        """Say how large the network is."""
        metrics = self._metrics
        for kind, count in size.nodes.items():
            self._of(metrics.nodes, kind).set(count)
        self._of(metrics.edges).set(size.edges)
        self._of(metrics.parameters).set(size.parameters)
        self._of(metrics.depth).set(size.depth)
        for kind, count in size.structure_changes.items():
            self._of(metrics.changes, kind).inc(count - self._changes.get(kind, 0))
            self._changes[kind] = count

    def remove(self) -> None:
        """Remove the partition's series."""
        for metric, labels in self._series:
            metric.remove(*labels)
        self._series.clear()
        self._metrics.log_likelihood.remove(self._labels)
        self._metrics.end_to_end.remove(self._labels)

    def _of(self, metric: _Metric, *labels: str) -> _Metric:
        """Return the partition's series of a metric."""
        key = (metric, (*self._labels, *labels))
        if key not in self._series:
            self._series[key] = metric.labels(*key[1])
        series: _Metric = self._series[key]
        return series

    def _count_work(self, block: ProcessedBlock) -> None:
        self._of(self._metrics.learned).inc(block.learned)
        for stage, seconds in block.seconds.items():
            self.observe_stage(stage, seconds)

    def _update_mean(self, log_likelihood: NDArray[np.float64]) -> None:
        known = log_likelihood[~np.isnan(log_likelihood)]
        if len(known) == 0:
            return
        past = 0.0 if np.isnan(self._mean) else np.exp(-len(known) / _RECENT_ROWS)
        self._mean = past * np.nan_to_num(self._mean) + (1 - past) * float(known.mean())
        self._of(self._metrics.mean).set(self._mean)
