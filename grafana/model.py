"""The dashboard *Model*: whether the stream has changed, unusual records, size of the networks."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as parts

from . import entities, networks
from .board import Row, board, row
from .panels import heatmap, lines, stat


def dashboard(page: str | None) -> parts.Dashboard:
    """Return the dashboard; `page` is the address of the workers' pages, if it is known."""
    return board(
        "oslrau-model",
        "What the models have learned, and which records are unusual.",
        page,
        _now(),
        _incidents(),
        _likelihood(),
        entities.entities(),
        entities.silences(),
        _anomalies(),
        _fields(),
        networks.network(),
        networks.partitions(),
    )


def _now() -> Row:
    return row(
        100,
        "Now",
        8,
        stat(
            101,
            "Median log-likelihood",
            "Median of the last 2,048 records of each partition, averaged over the partitions.",
            "suffix: nats",
            'avg(oslrau_log_likelihood_quantile{selected, quantile="0.5"})',
        ),
        stat(
            102,
            "Anomalous",
            "Anomalous records in 15 minutes, divided by the number that alarm_rate predicts, in "
            "the partition with the most. All workers.",
            "suffix: x",
            "max(oslrau:anomaly_excess{recorded})",
            alert="OslrauAnomalies",
        ),
        stat(
            103,
            "Anomalies in an hour",
            "Anomalous records of the last hour.",
            "short",
            "sum(increase(oslrau_anomalies_total{selected}[1h]))",
        ),
        stat(
            104,
            "Node budget",
            "Share of learner.max_nodes that the largest network uses. All workers.",
            "percentunit",
            "max(oslrau:node_budget_ratio{recorded})",
        ),
        stat(
            107,
            "Drifts",
            "Drift events of the last 15 minutes, in the partition with the most.",
            "short",
            "max(sum by (job, topic, partition)"
            " (increase(oslrau_drift_events_total{selected}[15m])))",
            alert="OslrauDrift",
        ),
        stat(
            105,
            "Structure changes in an hour",
            "Splits, merges and growth of all networks in the last hour.",
            "short",
            "sum(increase(oslrau_structure_changes_total{selected}[1h]))",
        ),
        stat(
            106,
            "Learned",
            "Records a second that the models learn.",
            "cps",
            "sum(rate(oslrau_learned_records_total{selected}[$__rate_interval]))",
        ),
        stat(
            108,
            "Not learned in an hour",
            "Records of the last hour that were scored but not learned.",
            "short",
            "sum(increase(oslrau_learning_skipped_total{selected}[1h]))",
        ),
    )


def _incidents() -> Row:
    return row(
        600,
        "Incidents",
        3,
        lines(
            601,
            "Open incidents",
            "Partitions with an open incident, by severity. Incidents shorter than the scrape "
            "interval are missing here.",
            "short",
            {"{{severity}}": "sum by (severity) (oslrau_incidents_open{selected})"},
            stacked=True,
        ),
        lines(
            602,
            "Incidents in an hour",
            "Incidents that opened in the last hour. The dashed line is the limit of "
            "OslrauIncidentsOften.",
            "short",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                ' (increase(oslrau_incidents_total{selected, severity="minor"}[1h]))'
            },
            alert="OslrauIncidentsOften",
        ),
        lines(
            603,
            "Longest open",
            "Time since the record that opened the open incident.",
            "s",
            {
                "{{topic}}/{{partition}}": "max by (topic, partition)"
                " (oslrau_incident_open_seconds{selected})"
            },
        ),
    )


def _likelihood() -> Row:
    return row(
        200,
        "Log-likelihood",
        2,
        lines(
            201,
            "Log-likelihood of records",
            "Quantiles of the last 2,048 records of each partition in nats, averaged over the "
            "partitions. If all of them fall, the stream has changed. If only the lowest falls, "
            "single records are unusual.",
            "suffix: nats",
            {"{{quantile}}": "avg by (quantile) (oslrau_log_likelihood_quantile{selected})"},
        ),
        lines(
            203,
            "Median against the past",
            "OslrauLogLikelihoodCollapse fires while the median of 15 minutes is below the usual "
            "low: the value that 95 % of the records of the hours before exceeded. All workers.",
            "suffix: nats",
            {
                "{{topic}}/{{partition}} median": "oslrau:log_likelihood:median{recorded}",
                "{{topic}}/{{partition}} usual low": "oslrau:log_likelihood:usual_low{recorded}",
            },
        ),
        lines(
            204,
            "Median by partition",
            "Median of the last 2,048 records, in nats.",
            "suffix: nats",
            {
                "{{topic}}/{{partition}}": "avg by (topic, partition)"
                ' (oslrau_log_likelihood_quantile{selected, quantile="0.5"})'
            },
        ),
        lines(
            205,
            "Drift statistic",
            "How far scores have fallen compared with earlier ones. At 1 there is a drift event, "
            "and the statistic starts again at 0.",
            "short",
            {
                "{{topic}}/{{partition}}": "max by (topic, partition)"
                " (oslrau_drift_statistic{selected})"
            },
        ),
        lines(
            206,
            "Drifts",
            "Drift events in 15 minutes. OslrauDrift fires at the first.",
            "short",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                " (increase(oslrau_drift_events_total{selected}[15m]))"
            },
            alert="OslrauDrift",
        ),
    )


def _anomalies() -> Row:
    return row(
        300,
        "Anomalies",
        2,
        lines(
            301,
            "Anomalous share",
            "Share of anomalous records in 15 minutes, divided by the setting alarm_rate. It is 1"
            " while the stream does not change. The dashed line is the limit of OslrauAnomalies. "
            "All workers.",
            "suffix: x",
            {"{{topic}}/{{partition}}": "oslrau:anomaly_excess{recorded}"},
            alert="OslrauAnomalies",
        ),
        lines(
            302,
            "Anomalies a minute",
            "Anomalous records a minute.",
            "cpm",
            {
                "{{topic}}/{{partition}}": "60 * sum by (topic, partition)"
                " (rate(oslrau_anomalies_total{selected}[$__rate_interval]))"
            },
            stacked=True,
        ),
        lines(
            303,
            "Most blamed fields",
            "Anomalies a minute by the field most to blame: the ten most frequent fields, over "
            "all partitions of the topic.",
            "cpm",
            {
                "{{topic}} {{field}}": "topk(10, 60 * sum by (topic, field)"
                " (rate(oslrau_blamed_fields_total{topics}[$__rate_interval])))"
            },
            stacked=True,
        ),
        heatmap(
            304,
            "p-values",
            "Scored records by their p-value. While the stream does not change, p-values are "
            "uniform: a tenth of the records lies in each tenth. Anomalies are in the lowest "
            "cells.",
            "none",
            "sum by (le) (increase(oslrau_p_value_bucket{selected}[$__rate_interval]))",
        ),
        lines(
            305,
            "Not learned",
            "Records a minute that were scored but not learned: their scores were far below all "
            "usual ones, or the setting learning is false.",
            "cpm",
            {
                "{{reason}}": "60 * sum by (reason)"
                " (rate(oslrau_learning_skipped_total{selected}[$__rate_interval]))"
            },
            stacked=True,
        ),
        lines(
            306,
            "Learned",
            "Records a second that each model learns.",
            "cps",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                " (rate(oslrau_learned_records_total{selected}[$__rate_interval]))"
            },
        ),
    )


def _fields() -> Row:
    return row(
        700,
        "Fields",
        1,
        lines(
            701,
            "Fields and what was expected of them",
            "The first 16 fields in the last record of each partition, with the setting forecasts, "
            "and the band in which each was expected before this record came: 98 of 100 values "
            "should be between low and high.",
            "short",
            {
                "{{topic}}/{{partition}} {{field}}": "avg by (topic, partition, field)"
                " (oslrau_field_value{selected})",
                "{{topic}}/{{partition}} {{field}} low": "avg by (topic, partition, field)"
                " (oslrau_field_expected_low{selected})",
                "{{topic}}/{{partition}} {{field}} high": "avg by (topic, partition, field)"
                " (oslrau_field_expected_high{selected})",
                "{{topic}}/{{partition}} {{field}} expected": "avg by (topic, partition, field)"
                " (oslrau_field_expected{selected})",
            },
            none="no data without the setting forecasts",
        ),
    )
