"""The rows of *Pipeline* about running workers: stages, snapshots, the group, processes."""

from __future__ import annotations

from .board import Row, row
from .panels import lines


def stages() -> Row:
    """Return the row."""
    return row(
        400,
        "Stages",
        2,
        lines(
            401,
            "Time spent by stage",
            "Seconds of work a second, summed over workers. Decoding, scoring and learning share "
            "one thread of each worker, so their sum is at most the number of workers. Emitting "
            "mostly waits for the broker.",
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


def snapshots() -> Row:
    """Return the row."""
    return row(
        700,
        "Snapshots",
        4,
        lines(
            701,
            "Age of snapshots",
            "Time since a snapshot last held all processed records, divided by snapshot_interval "
            "(at least a minute). The dashed line is the limit of OslrauSnapshotOld. All workers.",
            "suffix: x",
            {"{{topic}}/{{partition}}": "oslrau:snapshot_intervals{recorded}"},
            alert="OslrauSnapshotOld",
        ),
        lines(
            702,
            "Size of snapshots",
            "Size of the last snapshot.",
            "bytes",
            {
                "{{topic}}/{{partition}}": "max by (topic, partition)"
                " (oslrau_snapshot_bytes{selected})"
            },
        ),
        lines(
            703,
            "Time of a snapshot",
            "Mean time in 5 minutes: of a snapshot, to write the state and to wait for the "
            "acknowledgement; of a restore, to find, read and check the state.",
            "s",
            {
                "{{stage}}": "sum by (stage)"
                ' (increase(oslrau_stage_seconds_sum{selected, stage=~"snapshot|restore"}[5m]))'
                " / sum by (stage)"
                ' (increase(oslrau_stage_seconds_count{selected, stage=~"snapshot|restore"}[5m]))'
            },
        ),
        lines(
            704,
            "Snapshots that failed",
            "In 5 minutes: snapshots that could not be saved, damaged snapshots that were "
            "skipped, and failed attempts to open partitions.",
            "short",
            {
                "{{kind}}": "sum by (kind)"
                " (increase(oslrau_snapshot_failures_total{selected}[5m]))",
                "opening": "sum(increase(oslrau_failed_openings_total{worker}[5m]))",
            },
        ),
    )


def group() -> Row:
    """Return the row."""
    return row(
        800,
        "Consumer group and broker",
        3,
        lines(
            801,
            "Assigned partitions",
            "Partitions that each worker reads.",
            "short",
            {"{{instance}}": "oslrau_assigned_partitions{worker}"},
            stacked=True,
        ),
        lines(
            802,
            "Rebalances",
            "Rebalances in 15 minutes, as each worker counts them. The dashed line is the limit "
            "of OslrauRebalancing.",
            "short",
            {"{{instance}}": "increase(oslrau_rebalances_total{worker}[15m])"},
            alert="OslrauRebalancing",
        ),
        lines(
            803,
            "Broker silent",
            "Time since the broker last answered; it is asked every second. The dashed line is the "
            "limit of OslrauBrokerAway.",
            "s",
            {"{{instance}}": "oslrau_broker_silent_seconds{worker}"},
            alert="OslrauBrokerAway",
        ),
    )


def processes() -> Row:
    """Return the row."""
    return row(
        600,
        "Worker processes",
        4,
        lines(
            601,
            "CPU",
            "CPU seconds a second. A worker has two busy threads, and rarely uses more than 1.5 "
            "CPUs.",
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
        lines(
            604,
            "Versions",
            "Workers by the version that they run.",
            "short",
            {"{{version}}": "count by (version) (oslrau_build_info{worker})"},
            stacked=True,
        ),
    )
