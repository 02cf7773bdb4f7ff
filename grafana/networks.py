"""The rows of *Model* that are about the networks and what they have learned."""

from __future__ import annotations

from .board import Row, row
from .panels import lines, table


def network() -> Row:
    """Return the row."""
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
            "Node budget",
            "Share of learner.max_nodes that each network uses. All workers.",
            "percentunit",
            {"{{topic}}/{{partition}}": "oslrau:node_budget_ratio{recorded}"},
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
    )


def partitions() -> Row:
    """Return the row."""
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
                "Drifts": "oslrau_drift_events_total{selected}",
                "Not learned": "oslrau_learning_skipped_total{selected}",
                "Nodes": "oslrau_network_nodes{selected}",
                "Parameters": "oslrau_network_parameters{selected}",
            },
        ),
    )
