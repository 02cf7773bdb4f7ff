"""The dashboard *Pipeline*: is the pipeline healthy."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as parts

from .board import Row, board, row
from .panels import heatmap, lines, stat


def dashboard() -> parts.Dashboard:
    """Return the dashboard."""
    return board(
        "oslrau-pipeline",
        "Records from their topic to their scores.",
        _health(),
        _throughput(),
        _delay(),
        _stages(),
        _rejected(),
        _processes(),
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
            "Time that the slowest partition needs for the records that wait, at the rate of "
            "the last 5 minutes; as recorded, of all workers.",
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
            "Share of the records of the worst topic that went to the dead letters, over 10 "
            "minutes; as recorded, of all workers.",
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
            "Records that wait, over the rate of the last 5 minutes; nothing while neither is. "
            "The dashed line is the limit of OslrauLag. As recorded, of all workers.",
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


def _stages() -> Row:
    return row(
        400,
        "Stages",
        2,
        lines(
            401,
            "Time spent by stage",
            "Seconds of work a second, all workers. Decoding, scoring and learning share one "
            "thread of a worker, so that their sum stays below one a worker; emitting mostly "
            "waits.",
            "percentunit",
            {
                "{{stage}}": "sum by (stage)"
                " (rate(oslrau_stage_seconds_sum{selected}[$__rate_interval]))"
            },
            stacked=True,
        ),
        lines(
            402,
            "Time of a batch by stage",
            "95th percentile of the time that a batch of records takes.",
            "s",
            {
                "{{stage}}": "histogram_quantile(0.95, sum by (stage, le)"
                " (rate(oslrau_stage_seconds_bucket{selected}[$__rate_interval])))"
            },
        ),
    )


def _rejected() -> Row:
    return row(
        500,
        "Rejected and missing records",
        3,
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
            "Share of the records that went to the dead letters, over 10 minutes. The dashed "
            "line is the limit of OslrauDeadLetters. As recorded, of all workers.",
            "percentunit",
            {"{{topic}}": 'oslrau:dead_letter_ratio{job=~"$job", topic=~"$topic"}'},
            alert="OslrauDeadLetters",
        ),
        lines(
            503,
            "Missing offsets",
            "Offsets a second that the log lacks: removed by compaction or retention, or marks "
            "of transactions.",
            "cps",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                " (rate(oslrau_missing_offsets_total{selected}[$__rate_interval]))"
            },
        ),
    )


def _processes() -> Row:
    return row(
        600,
        "Worker processes",
        3,
        lines(
            601,
            "CPU",
            "CPU seconds a second. A worker uses two threads, and seldom more than one and a "
            "half CPUs.",
            "percentunit",
            {"{{instance}}": "rate(process_cpu_seconds_total{worker}[$__rate_interval])"},
        ),
        lines(
            602,
            "Memory",
            "Resident memory.",
            "bytes",
            {"{{instance}}": "process_resident_memory_bytes{worker}"},
        ),
        lines(
            603,
            "Up for",
            "Time since the process started.",
            "s",
            {"{{instance}}": "time() - process_start_time_seconds{worker}"},
        ),
    )


def _quantile(share: float, histogram: str) -> str:
    buckets = f"rate({histogram}_bucket{{selected}}[$__rate_interval])"
    return f"histogram_quantile({share}, sum by (le) ({buckets}))"
