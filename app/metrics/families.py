"""The metrics of partitions: their names and help texts, and how to read their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isnan
from operator import attrgetter
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
    """A counter or gauge: its name, its help text, and a function that reads its value.

    The function returns None for no series, and with a label one number for each label value.
    Without one, the value is the attribute of this name.
    """

    name: str
    help: str
    read: _Read | None = None
    label: str | None = None


class _Histogram(NamedTuple):
    """A histogram: its name, its help text, and a function that reads its distribution."""

    name: str
    help: str
    read: Callable[[PartitionMetrics], Mapping[str, Distribution] | Distribution]
    label: str | None = None


def _network(name: str) -> _Read:
    """Return a function that reads a number of the network; None without a network."""
    return lambda of: None if of.network is None else getattr(of.network, name)


def _field(name: str) -> _Read:
    """Return a function that reads a number of each followed field in the last record."""

    def read(of: PartitionMetrics) -> dict[str, float]:
        numbers = {field: getattr(last, name) for field, last in of.expected_fields.items()}
        return {field: number for field, number in numbers.items() if not isnan(number)}

    return read


_COUNTERS = (
    _Numbers(
        "records",
        "Records processed: scored, rejected to the dead-letter topic, or replayed (learned again "
        "after a restart without another score).",
        label="outcome",
    ),
    _Numbers(
        "wrong_types",
        "Contents of chosen fields that count as missing: no numbers, by wrong_type, or negative "
        "ones of what looked like a count.",
    ),
    _Numbers("learned_records", "Records that the model has learned.", lambda of: of.learned),
    _Numbers(
        "learning_skipped",
        "Records scored but not learned: far below all usual scores (learned once adapt_after "
        "of them have come), or frozen because the setting learning is false.",
        lambda of: of.skipped,
        "reason",
    ),
    _Numbers("anomalies", "Scored records with a p-value of at most the setting alarm_rate."),
    _Numbers(
        "dead_letters",
        "Records that could not be scored and were sent to the dead-letter topic, by reason.",
        label="reason",
    ),
    _Numbers(
        "drift_events",
        "Drift events in the anomalies topic: records have become less likely than before.",
    ),
    _Numbers(
        "incidents",
        "Incidents by severity: each counts for its severity and those below, so all are minor.",
        label="severity",
    ),
    _Numbers(
        "missing_offsets",
        "Offsets without a record in the logs read: removed by compaction or retention, or "
        "transaction markers.",
        lambda of: of.missing,
    ),
    _Numbers(
        "entities_evicted",
        "Entities that gave way to others, as there were more than the setting max_entities.",
    ),
    _Numbers(
        "entity_events",
        "Events of entities in the anomalies topic, by state: new; unusual as a whole among all "
        "entities; usual again.",
        label="state",
    ),
    _Numbers(
        "silences",
        "Silences of entities and of the partition that were longer than usual. They are looked "
        "for with silences in the setting events.",
    ),
    _Numbers(
        "rate_changes",
        "Times that entities or the partition began to send more or fewer records than usual. They "
        "are looked for with the setting rates.",
    ),
    _Numbers(
        "field_changes",
        "Fields whose records changed, by state: a new one appeared or an old one again, a chosen "
        "one vanished, or has another type or unit.",
        label="state",
    ),
    _Numbers(
        "structure_changes",
        "Changes of the network's structure since the worker opened the partition: mixtures and "
        "multivariate leaves created, and mixtures denied by the node budget.",
        label="kind",
    ),
    _Numbers(
        "snapshot_failures",
        "Snapshots that could not be saved, and stored snapshots skipped as damaged.",
        label="kind",
    ),
)
_GAUGES = (
    _Numbers(
        "empty_fields",
        "Fields that settings name and none of the first 1,000 records has: names may be wrong.",
    ),
    _Numbers("ignored_fields", "Fields of the first records that these did not choose."),
    _Numbers(
        "successor_records_left",
        "Records to learn before a model with changed settings takes over; 0 without one.",
    ),
    _Numbers(
        "awaited_schemas", "Schemas that the next records need while the registry does not answer."
    ),
    _Numbers(
        "network_nodes",
        "Nodes of the sum-product network, by kind.",
        _network("nodes"),
        "kind",
    ),
    _Numbers(
        "network_parameters",
        "Free parameters of the network: weights, means, variances and covariances.",
        _network("parameters"),
    ),
    _Numbers(
        "log_likelihood_quantile",
        "Quantiles of the log-likelihood in nats of the last 2048 scored records.",
        lambda of: of.window.quantiles(_QUANTILES),
        "quantile",
    ),
    _Numbers(
        "drift_statistic",
        "How far scores have fallen against earlier ones: at 1 a drift event is raised and the "
        "statistic restarts at 0.",
        lambda of: of.drift,
    ),
    _Numbers(
        "entities", "Entities whose usual values are known, at most the setting max_entities."
    ),
    _Numbers(
        "incidents_open",
        "Open incidents, by severity: one at most of each entity.",
        lambda of: of.open_incidents(),
        "severity",
    ),
    _Numbers(
        "incident_open_seconds",
        "Time since the timestamp of the record that opened the oldest open incident.",
        lambda of: of.incident_seconds(),
    ),
    _Numbers(
        "last_record_timestamp_seconds",
        "Timestamp of the last processed record that has one, in seconds since 1970.",
        lambda of: of.last_timestamp,
    ),
    _Numbers(
        "silence_limit_seconds",
        "Time after which a silence of the partition is longer than usual.",
        lambda of: of.silence_limit,
    ),
    _Numbers(
        "silent_entities", "Entities whose silence is longer than usual after the last record."
    ),
    _Numbers(
        "field_value",
        "Value of one of the first 16 fields in the last scored record, with the setting "
        "forecasts.",
        _field("value"),
        "field",
    ),
    _Numbers(
        "field_expected",
        "Mean that was expected of the field before this record came.",
        _field("expected"),
        "field",
    ),
    _Numbers(
        "field_expected_low",
        "Quantile at 1 % that was expected of the field before this record came.",
        _field("low"),
        "field",
    ),
    _Numbers(
        "field_expected_high",
        "Quantile at 99 % that was expected of the field before this record came.",
        _field("high"),
        "field",
    ),
    _Numbers("consumer_lag_records", "Unread records in the log.", lambda of: of.lag),
    _Numbers(
        "snapshot_age_seconds",
        "Time since a snapshot last held all processed records.",
        lambda of: of.snapshot_age,
    ),
    _Numbers("snapshot_bytes", "Size of the last snapshot."),
)
_HISTOGRAMS = (
    _Histogram(
        "stage_seconds",
        "Time of each stage for a batch of records (decode, score, learn, emit), of a snapshot, "
        "or of a restore.",
        lambda of: of.stages,
        "stage",
    ),
    _Histogram(
        "p_value",
        "p-value of scored records: uniform from 0 to 1 while the stream does not change.",
        lambda of: of.p_value,
    ),
    _Histogram(
        "end_to_end_seconds",
        "Time from a record's timestamp to the broker's acknowledgement of its score.",
        lambda of: of.end_to_end,
    ),
)


class PartitionCollector(Collector):
    """Collects the metrics of the current partitions at each scrape."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], PartitionMetrics] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, including those without series."""
        yield from (self._numbers(CounterMetricFamily, family) for family in _COUNTERS)
        yield from (self._numbers(GaugeMetricFamily, family) for family in _GAUGES)
        yield from map(self._histogram, _HISTOGRAMS)

    def _numbers(
        self, kind: type[CounterMetricFamily] | type[GaugeMetricFamily], family: _Numbers
    ) -> Metric:
        metric = kind(PREFIX + family.name, family.help, labels=_labels(family.label))
        read: _Read = family.read or attrgetter(family.name)
        for (topic, number), partition in self.partitions.items():
            values = read(partition)
            if isinstance(values, Mapping):
                for value, count in values.items():
                    metric.add_metric((topic, str(number), value), count)
            elif values is not None:
                metric.add_metric((topic, str(number)), values)
        return metric

    def _histogram(self, family: _Histogram) -> Metric:
        labels = _labels(family.label)
        metric = HistogramMetricFamily(PREFIX + family.name, family.help, labels=labels)
        for (topic, number), partition in self.partitions.items():
            values = family.read(partition)
            if isinstance(values, Distribution):
                metric.add_metric((topic, str(number)), *values.cumulated())
            else:
                for value, distribution in values.items():
                    metric.add_metric((topic, str(number), value), *distribution.cumulated())
        return metric


def _labels(extra: str | None) -> tuple[str, ...]:
    return ("topic", "partition") if extra is None else ("topic", "partition", extra)
