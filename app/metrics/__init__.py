"""The worker's metrics for Prometheus, on a registry that is handed in.

All of them count rows, once per batch, as plain numbers; series are made when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.process_collector import ProcessCollector

from faust_oslrau.app.settings import Settings

from .broker_contact import BrokerContact
from .families import PREFIX, PartitionCollector
from .page import metrics_page
from .partition import BlamedFields, NetworkSize, PartitionMetrics
from .worker import BlamedFieldsCollector, WorkerMetrics

__all__ = ["Metrics", "NetworkSize", "PartitionMetrics", "metrics_page"]


class Metrics:
    """The metrics of a worker and of all its partitions.

    Parameters
    ----------
    registry
        Where they are exposed.
    settings
        Those that alerts are relative to are shown.
    contact
        Knows for how long the broker has not answered.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        settings: Settings | None = None,
        contact: BrokerContact | None = None,
    ) -> None:
        self.registry = registry
        self.worker = WorkerMetrics(registry, settings or Settings(), contact or BrokerContact())
        self._blamed = BlamedFields()
        self._collector = PartitionCollector()
        ProcessCollector(registry=registry)
        registry.register(self._collector)
        registry.register(BlamedFieldsCollector(self._blamed))
        assigned = Gauge(
            PREFIX + "assigned_partitions",
            "Partitions that this worker reads, or opens to read.",
            registry=registry,
        )
        assigned.set_function(lambda: len(self._collector.partitions))

    def of_partition(self, topic: str, partition: int) -> PartitionMetrics:
        """Return the metrics of a partition, which are shown until it is removed."""
        partitions = self._collector.partitions
        if (topic, partition) not in partitions:
            partitions[topic, partition] = PartitionMetrics(self._blamed, topic)
        return partitions[topic, partition]

    def retain(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Show the series of these partitions and of no others."""
        kept = set(partitions)
        for place in list(self._collector.partitions):
            if place not in kept:
                self.remove(*place)

    def remove(self, topic: str, partition: int) -> None:
        """Show a partition no more; whoever still counts it does so for nobody."""
        self._collector.partitions.pop((topic, partition), None)
