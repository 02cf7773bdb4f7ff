"""The dashboard *Model*: has the stream changed, which records are strange, how large is it all."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as parts

from .board import Row, board, row
from .panels import heatmap, lines, stat, table


def dashboard() -> parts.Dashboard:
    """Return the dashboard."""
    return board(
        "oslrau-model",
        "What the models have learned, and what they find strange.",
        _now(),
        _likelihood(),
        _anomalies(),
        _network(),
        _partitions(),
    )


def _now() -> Row:
    return row(
        100,
        "Now",
        6,
        stat(
            101,
            "Median log-likelihood",
            "Of the records of the last minutes.",
            "suffix: nats",
            _quantile(0.5),
        ),
        stat(
            102,
            "Anomalous",
            "Share of the scored records of the worst partition, over 15 minutes; as recorded, "
            "of all workers.",
            "percentunit",
            "max(oslrau:anomaly_ratio{recorded})",
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
            "Largest network",
            "Nodes of the largest network; red where its budget is used up.",
            "short",
            "max(sum by (job, topic, partition) (oslrau_network_nodes{selected}))",
            alert="OslrauNodeBudget",
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
            "Records a second that the models take in.",
            "cps",
            "sum(rate(oslrau_learned_records_total{selected}[$__rate_interval]))",
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
            "Quantiles in nats, between the bounds of the histogram's buckets. A fall of all of "
            "them means that the stream has changed; of the lowest alone, that single records "
            "are strange.",
            "suffix: nats",
            {
                "90 %": _quantile(0.9),
                "median": _quantile(0.5),
                "10 %": _quantile(0.1),
                "1 %": _quantile(0.01),
            },
        ),
        heatmap(
            202,
            "Log-likelihood of records",
            "Scored records by their log-likelihood in nats.",
            "suffix: nats",
            "sum by (le) (increase(oslrau_log_likelihood_bucket{selected}[$__rate_interval]))",
        ),
        lines(
            203,
            "Median against the past",
            "OslrauLogLikelihoodCollapse fires while the median of 15 minutes is below the usual "
            "low, which 95 % of the records of the hours before exceed. As recorded, of all "
            "workers.",
            "suffix: nats",
            {
                "{{topic}}/{{partition}} median": "oslrau:log_likelihood:median{recorded}",
                "{{topic}}/{{partition}} usual low": "oslrau:log_likelihood:usual_low{recorded}",
            },
        ),
        lines(
            204,
            "Mean by partition",
            "Mean over about the last thousand records, in nats. One record that is far enough "
            "away moves it by any amount.",
            "suffix: nats",
            {
                "{{topic}}/{{partition}}": "avg by (topic, partition)"
                " (oslrau_log_likelihood_mean{selected})"
            },
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
            "Share of the scored records over 15 minutes; the setting alarm_rate is what a "
            "stream without a change has. The dashed line is the limit of OslrauAnomalies. As "
            "recorded, of all workers.",
            "percentunit",
            {"{{topic}}/{{partition}}": "oslrau:anomaly_ratio{recorded}"},
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
    )


def _network() -> Row:
    return row(
        400,
        "Networks",
        3,
        lines(
            401,
            "Nodes by kind",
            "Nodes of all networks together.",
            "short",
            {"{{kind}}": "sum by (kind) (oslrau_network_nodes{selected})"},
            stacked=True,
        ),
        lines(
            402,
            "Nodes by partition",
            "Nodes of each network. The dashed line is the limit of OslrauNodeBudget.",
            "short",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                " (oslrau_network_nodes{selected})"
            },
            alert="OslrauNodeBudget",
        ),
        lines(
            403,
            "Structure changes",
            "Changes a minute by kind.",
            "cpm",
            {
                "{{kind}}": "60 * sum by (kind)"
                " (rate(oslrau_structure_changes_total{selected}[$__rate_interval]))"
            },
            stacked=True,
        ),
        lines(
            404,
            "Parameters",
            "Free parameters of each network.",
            "short",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                " (oslrau_network_parameters{selected})"
            },
        ),
        lines(
            405,
            "Depth",
            "Nodes on the longest way from the root to a leaf.",
            "short",
            {
                "{{topic}}/{{partition}}": "max by (topic, partition)"
                " (oslrau_network_depth{selected})"
            },
        ),
    )


def _partitions() -> Row:
    return row(
        500,
        "Partitions",
        1,
        table(
            501,
            "Partitions",
            "Each partition has a model of its own.",
            {
                "Scored": 'oslrau_records_total{selected, outcome="scored"}',
                "Anomalies": "oslrau_anomalies_total{selected}",
                "Nodes": "oslrau_network_nodes{selected}",
                "Edges": "oslrau_network_edges{selected}",
                "Parameters": "oslrau_network_parameters{selected}",
                "Depth": "oslrau_network_depth{selected}",
            },
        ),
    )


def _quantile(share: float) -> str:
    buckets = "rate(oslrau_log_likelihood_bucket{selected}[$__rate_interval])"
    return f"histogram_quantile({share}, sum by (le) ({buckets}))"
