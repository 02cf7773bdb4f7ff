"""The metrics of a worker as a whole."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from faust_oslrau.app.settings import Settings

from .broker_contact import BrokerContact
from .families import PREFIX
from .partition import BlamedFields


class WorkerMetrics:
    """The metrics without the labels topic and partition.

    Attributes
    ----------
    rebalances
        The number of rebalances of the consumer group.
    failed_openings
        The number of failed attempts to open the assigned partitions.
    waiting_partitions
        The number of assigned partitions without output partitions.
    """

    def __init__(
        self, registry: CollectorRegistry, settings: Settings, contact: BrokerContact
    ) -> None:
        self.rebalances = Counter(
            PREFIX + "rebalances",
            "Rebalances of the consumer group that this worker took part in.",
            registry=registry,
        )
        self.failed_openings = Counter(
            PREFIX + "failed_openings",
            "Failed attempts to open the assigned partitions: offsets or snapshots could not be "
            "read, or the start of learning could not be recorded.",
            registry=registry,
        )
        self.waiting_partitions = Gauge(
            PREFIX + "waiting_partitions",
            "Assigned partitions that are not read, because an output topic has too few partitions "
            "and the worker may not add any.",
            registry=registry,
        )
        build = Gauge(
            PREFIX + "build_info",
            "1, labelled by the versions of the worker and of Python.",
            ("version", "python"),
            registry=registry,
        )
        build.labels(version("faust-oslrau"), platform.python_version()).set(1)
        most_nodes = settings.learner.max_nodes
        silent = Gauge(
            PREFIX + "broker_silent_seconds",
            "Time since the broker's last answer to a request, which is sent every second.",
            registry=registry,
        )
        silent.set_function(lambda: contact.silent_seconds)
        chosen = Gauge(
            PREFIX + "setting",
            "Settings to which alerts are relative, by name.",
            ("name",),
            registry=registry,
        )
        chosen.labels("alarm_rate").set(settings.alarm_rate)
        chosen.labels("learner.max_nodes").set(math.inf if most_nodes is None else most_nodes)
        chosen.labels("snapshot_interval").set(settings.snapshot_interval)


class BlamedFieldsCollector(Collector):
    """Collects the number of anomalies by the field most to blame."""

    def __init__(self, blamed: BlamedFields) -> None:
        self._blamed = blamed

    def collect(self) -> Iterator[Metric]:
        """Yield the only metric."""
        text = "Anomalies by the field most to blame, over all partitions of this worker."
        metric = CounterMetricFamily(PREFIX + "blamed_fields", text, labels=("topic", "field"))
        for labels, count in self._blamed.counts.items():
            metric.add_metric(labels, count)
        yield metric
