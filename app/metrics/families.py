"""The series of partitions: their names, what they mean, and where their numbers are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from .distribution import Distribution
from .partition import PartitionMetrics

PREFIX = "oslrau_"
_Read = Callable[[PartitionMetrics], Mapping[str, float] | float | None]
_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


class _Numbers(NamedTuple):
    """A counter or gauge: its name, help, and its number in a partition, None for no series.

    With a label it has as many numbers as the label has values.
    """

    name: str
    help: str
    read: _Read
    label: str | None = None


class _Histogram(NamedTuple):
    """A histogram: its name, help, and its distribution in a partition."""

    name: str
    help: str
    read: Callable[[PartitionMetrics], Mapping[str, Distribution] | Distribution]
    label: str | None = None


def _network(name: str) -> _Read:
    """Return how to read a number of the network, where there is a network."""
    return lambda of: None if of.network is None else getattr(of.network, name)


_COUNTERS = (
    _Numbers(
        "records",
        "Records done with: scored, rejected to the dead letters, or replayed, that is learned "
        "again after a restart without another score.",
        lambda of: of.records,
        "outcome",
    ),
    _Numbers("learned_records", "Records that the model has learned.", lambda of: of.learned),
    _Numbers(
        "learning_skipped",
        "Records that were scored but not learned: far below all usual scores (learned later "
        "where they turn out to be a new regime), or frozen, as the setting learning is false.",
        lambda of: of.skipped,
        "reason",
    ),
    _Numbers(
        "anomalies",
        "Scored records with a p-value of at most the setting alarm_rate.",
        lambda of: of.anomalies,
    ),
    _Numbers(
        "dead_letters",
        "Records that could not be scored and were sent to the dead-letter topic, by reason.",
        lambda of: of.dead_letters,
        "reason",
    ),
    _Numbers(
        "drift_events",
        "Drifts: times that records had become less likely than they used to be, each an event in "
        "the topic of anomalies.",
        lambda of: of.drift_events,
    ),
    _Numbers(
        "missing_offsets",
        "Offsets between the records read that the log does not hold: removed by compaction or "
        "retention, or marks of transactions.",
        lambda of: of.missing,
    ),
    _Numbers(
        "structure_changes",
        "Changes of the network's structure since the worker took the partition: mixtures and "
        "multivariate leaves made, and mixtures denied by the node budget.",
        lambda of: of.structure_changes,
        "kind",
    ),
    _Numbers(
        "snapshot_failures",
        "Snapshots that could not be saved, and stored ones left out as damaged.",
        lambda of: of.snapshot_failures,
        "kind",
    ),
)
_GAUGES = (
    _Numbers(
        "network_nodes",
        "Nodes of the sum-product network, by kind.",
        _network("nodes"),
        "kind",
    ),
    _Numbers("network_edges", "Edges of the network.", _network("edges")),
    _Numbers(
        "network_parameters",
        "Free parameters of the network: weights, means, variances and covariances.",
        _network("parameters"),
    ),
    _Numbers(
        "network_depth",
        "Nodes on the longest way from the network's root to a leaf.",
        _network("depth"),
    ),
    _Numbers(
        "log_likelihood_mean",
        "Mean log-likelihood in nats of the last 2048 scored records.",
        lambda of: of.window.mean(),
    ),
    _Numbers(
        "log_likelihood_quantile",
        "Quantiles of the log-likelihood in nats of the last 2048 scored records.",
        lambda of: of.window.quantiles(_QUANTILES),
        "quantile",
    ),
    _Numbers(
        "drift_statistic",
        "How far scores have fallen against those before: a drift at 1, from where it begins anew "
        "at 0.",
        lambda of: of.drift,
    ),
    _Numbers("consumer_lag_records", "Records that wait in the log.", lambda of: of.lag),
    _Numbers(
        "snapshot_age_seconds",
        "Time since a snapshot last held all that was processed.",
        lambda of: of.snapshot_age,
    ),
    _Numbers("snapshot_bytes", "Size of the last snapshot.", lambda of: of.snapshot_bytes),
    _Numbers(
        "snapshot_offset",
        "Offset of the next record after the last snapshot, from which a restart would go on.",
        lambda of: of.snapshot_offset,
    ),
)
_HISTOGRAMS = (
    _Histogram(
        "stage_seconds",
        "Time that a batch of records took in a stage (decode, score, learn, emit), or a "
        "snapshot or its restore.",
        lambda of: of.stages,
        "stage",
    ),
    _Histogram(
        "log_likelihood",
        "Log-likelihood of scored records in nats. Its buckets are too wide for a quantile: "
        "see oslrau_log_likelihood_quantile.",
        lambda of: of.log_likelihood,
    ),
    _Histogram(
        "p_value",
        "p-value of scored records: evenly spread from 0 to 1 while the stream does not change.",
        lambda of: of.p_value,
    ),
    _Histogram(
        "end_to_end_seconds",
        "Time from a record's timestamp to the broker's acknowledgement of its score.",
        lambda of: of.end_to_end,
    ),
)


class PartitionCollector(Collector):
    """Shows the partitions that are there when somebody looks."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], PartitionMetrics] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, those without series too."""
        yield from (self._numbers(CounterMetricFamily, family) for family in _COUNTERS)
        yield from (self._numbers(GaugeMetricFamily, family) for family in _GAUGES)
        yield from map(self._histogram, _HISTOGRAMS)

    def _numbers(
        self, kind: type[CounterMetricFamily] | type[GaugeMetricFamily], family: _Numbers
    ) -> Metric:
        found = kind(PREFIX + family.name, family.help, labels=_labels(family.label))
        for (topic, number), partition in self.partitions.items():
            values = family.read(partition)
            if isinstance(values, Mapping):
                for value, count in values.items():
                    found.add_metric((topic, str(number), value), count)
            elif values is not None:
                found.add_metric((topic, str(number)), values)
        return found

    def _histogram(self, family: _Histogram) -> Metric:
        labels = _labels(family.label)
        found = HistogramMetricFamily(PREFIX + family.name, family.help, labels=labels)
        for (topic, number), partition in self.partitions.items():
            values = family.read(partition)
            if isinstance(values, Distribution):
                found.add_metric((topic, str(number)), *values.cumulated())
            else:
                for value, distribution in values.items():
                    found.add_metric((topic, str(number), value), *distribution.cumulated())
        return found


def _labels(further: str | None) -> tuple[str, ...]:
    return ("topic", "partition") if further is None else ("topic", "partition", further)
