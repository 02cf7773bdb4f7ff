"""The worker's Prometheus metrics.

Processing updates plain numbers once for each batch; Prometheus series are created at each scrape.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.process_collector import ProcessCollector

from faust_oslrau.app.settings import Settings

from .broker_contact import BrokerContact
from .families import PREFIX, PartitionCollector
from .page import accepted, metrics_page
from .partition import BlamedFields, NetworkSize, PartitionMetrics
from .worker import BlamedFieldsCollector, WorkerMetrics

__all__ = ["Metrics", "NetworkSize", "PartitionMetrics", "accepted", "metrics_page"]


class Metrics:
    """The metrics of a worker and of all its partitions.

    Parameters
    ----------
    registry
        The Prometheus registry of the metrics.
    settings
        The worker's settings; those that alerts refer to are metrics.
    contact
        Records when the broker last answered.
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
        """Return the metrics of a partition; its series exist until `remove`."""
        partitions = self._collector.partitions
        if (topic, partition) not in partitions:
            partitions[topic, partition] = PartitionMetrics(self._blamed, topic)
        return partitions[topic, partition]

    def retain(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Remove the series of all other partitions."""
        retained = set(partitions)
        for tp in list(self._collector.partitions):
            if tp not in retained:
                self.remove(*tp)

    def remove(self, topic: str, partition: int) -> None:
        """Remove the series of a partition; later updates of its metrics have no effect."""
        self._collector.partitions.pop((topic, partition), None)
