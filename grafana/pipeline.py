"""The dashboard *Pipeline*: whether the pipeline is healthy."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as parts

from . import operations
from .board import Row, board, row
from .panels import heatmap, lines, stat


def dashboard(page: str | None) -> parts.Dashboard:
    """Return the dashboard; `page` is the address of the workers' pages, if it is known."""
    return board(
        "oslrau-pipeline",
        "Records from their topic to their scores.",
        page,
        _health(),
        _throughput(),
        _delay(),
        operations.stages(),
        operations.snapshots(),
        _rejected(),
        operations.group(),
        operations.processes(),
    )


def _health() -> Row:
    return row(
        100,
        "Health",
        8,
        stat(101, "Workers", "Workers that answer.", "short", "sum(up{worker})"),
        stat(
            102,
            "Partitions",
            "Partitions that a worker reads.",
            "short",
            "count(count by (topic, partition) (oslrau_records_total{selected}))",
        ),
        stat(
            103,
            "Scored",
            "Scored records a second.",
            "cps",
            'sum(rate(oslrau_records_total{selected, outcome="scored"}[$__rate_interval]))',
        ),
        stat(
            104,
            "Lag",
            "Records that wait in the log.",
            "short",
            "sum(oslrau_consumer_lag_records{selected})",
        ),
        stat(
            105,
            "Time to drain",
            "Time to process the waiting records at the rate of the last 5 minutes, in the "
            "slowest partition. All workers.",
            "s",
            "max(oslrau:drain_seconds{recorded} >= 0)",
            alert="OslrauLag",
            none="nothing waits",
        ),
        stat(
            106,
            "Score after",
            "Time from a record's timestamp to the acknowledgement of its score, 95th percentile.",
            "s",
            _quantile(0.95, "oslrau_end_to_end_seconds"),
            alert="OslrauScoresLate",
        ),
        stat(
            107,
            "Rejected",
            "Share of records that became dead letters in 10 minutes, in the topic with the "
            "largest share. All workers.",
            "percentunit",
            'max(oslrau:dead_letter_ratio{job=~"$job", topic=~"$topic"})',
            alert="OslrauDeadLetters",
        ),
        stat(
            108,
            "Alerts",
            "Alerts of these rules that fire.",
            "short",
            'count(ALERTS{alertname=~"Oslrau.*", alertstate="firing"}) or vector(0)',
        ),
        stat(
            109,
            "Broker silent",
            "Time since the broker last answered a worker: the longest of all workers.",
            "s",
            "max(oslrau_broker_silent_seconds{worker})",
            alert="OslrauBrokerAway",
        ),
        stat(
            110,
            "Snapshots late",
            "Age of the oldest partition's last snapshot, divided by snapshot_interval (at least "
            "a minute). All workers.",
            "suffix: x",
            "max(oslrau:snapshot_intervals{recorded})",
            alert="OslrauSnapshotOld",
            none="off",
        ),
        stat(
            111,
            "Failed openings",
            "Failed attempts to open assigned partitions in the last 2 minutes.",
            "short",
            "max(sum by (job, instance) (increase(oslrau_failed_openings_total{worker}[2m])))",
            alert="OslrauRestoreFailing",
        ),
        stat(
            112,
            "Damaged snapshots",
            "Stored snapshots that were damaged and skipped, since the workers started.",
            "short",
            'sum(oslrau_snapshot_failures_total{selected, kind="damaged"})',
            alert="OslrauSnapshotDamaged",
        ),
        stat(
            113,
            "Rebalances",
            "Rebalances of the consumer group in 15 minutes.",
            "short",
            "max(increase(oslrau_rebalances_total{worker}[15m]))",
            alert="OslrauRebalancing",
        ),
        stat(
            114,
            "Not learned",
            "Share of the records of the last hour that were scored but not learned.",
            "percentunit",
            "sum(increase(oslrau_learning_skipped_total{selected}[1h]))"
            ' / sum(increase(oslrau_records_total{selected, outcome="scored"}[1h]))',
        ),
        stat(
            115,
            "Snapshot size",
            "Size of the largest last snapshot.",
            "bytes",
            "max(oslrau_snapshot_bytes{selected})",
            none="none yet",
        ),
        stat(
            116,
            "Version",
            "Number of workers that run the most common version.",
            "short",
            "max(count by (version) (oslrau_build_info{worker}))",
        ),
    )


def _throughput() -> Row:
    return row(
        200,
        "Throughput",
        2,
        lines(
            201,
            "Records by outcome",
            "Replayed records are learned again after a restart; their scores exist already.",
            "cps",
            {
                "{{outcome}}": "sum by (outcome)"
                " (rate(oslrau_records_total{selected}[$__rate_interval]))",
                "learned": "sum(rate(oslrau_learned_records_total{selected}[$__rate_interval]))",
            },
        ),
        lines(
            202,
            "Scored records by partition",
            "Scored records a second.",
            "cps",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                ' (rate(oslrau_records_total{selected, outcome="scored"}[$__rate_interval]))'
            },
            stacked=True,
        ),
    )


def _delay() -> Row:
    return row(
        300,
        "Lag and delay",
        2,
        lines(
            301,
            "Lag",
            "Records that wait in the log.",
            "short",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                " (oslrau_consumer_lag_records{selected})"
            },
        ),
        lines(
            302,
            "Time to drain",
            "Waiting records, divided by the rate of the last 5 minutes. There is no value while "
            "nothing waits and nothing is processed. The dashed line is the limit of OslrauLag. "
            "All workers.",
            "s",
            {"{{topic}}/{{partition}}": "oslrau:drain_seconds{recorded} >= 0"},
            alert="OslrauLag",
        ),
        lines(
            303,
            "Time to the score",
            "From a record's timestamp to the acknowledgement of its score. The dashed line is "
            "the limit of OslrauScoresLate.",
            "s",
            {
                "median": _quantile(0.5, "oslrau_end_to_end_seconds"),
                "95 %": _quantile(0.95, "oslrau_end_to_end_seconds"),
                "99 %": _quantile(0.99, "oslrau_end_to_end_seconds"),
            },
            alert="OslrauScoresLate",
        ),
        heatmap(
            304,
            "Time to the score",
            "Scored records by the time from their timestamp to the acknowledgement of their "
            "score.",
            "s",
            "sum by (le) (increase(oslrau_end_to_end_seconds_bucket{selected}[$__rate_interval]))",
        ),
    )


def _rejected() -> Row:
    return row(
        500,
        "Rejected, missing and waiting records",
        5,
        lines(
            501,
            "Dead letters by reason",
            "Records a second that could not be scored.",
            "cps",
            {
                "{{reason}}": "sum by (reason)"
                " (rate(oslrau_dead_letters_total{selected}[$__rate_interval]))"
            },
            stacked=True,
        ),
        lines(
            502,
            "Rejected share",
            "Share of records that became dead letters in 10 minutes. The dashed line is the "
            "limit of OslrauDeadLetters. All workers.",
            "percentunit",
            {"{{topic}}": 'oslrau:dead_letter_ratio{job=~"$job", topic=~"$topic"}'},
            alert="OslrauDeadLetters",
        ),
        lines(
            503,
            "Missing offsets",
            "Offsets a second without a record: removed by compaction or retention, or "
            "transaction markers.",
            "cps",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                " (rate(oslrau_missing_offsets_total{selected}[$__rate_interval]))"
            },
        ),
        lines(
            504,
            "Awaited schemas",
            "Schemas that the next records need while the registry does not answer: the partition "
            "waits. The dashed line is the limit of OslrauSchemasAwaited.",
            "short",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                " (oslrau_awaited_schemas{selected})"
            },
            alert="OslrauSchemasAwaited",
        ),
        lines(
            505,
            "Fields that changed",
            "Fields that appeared, vanished, or have another type or unit, in an hour. OslrauField "
            "fires at the first.",
            "short",
            {
                "{{topic}}/{{partition}} {{state}}": "sum by (topic, partition, state)"
                " (increase(oslrau_field_changes_total{selected}[1h]))"
            },
            alert="OslrauField",
        ),
    )


def _quantile(share: float, histogram: str) -> str:
    buckets = f"rate({histogram}_bucket{{selected}}[$__rate_interval])"
    return f"histogram_quantile({share}, sum by (le) ({buckets}))"
