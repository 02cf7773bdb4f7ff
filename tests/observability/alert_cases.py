"""Series of two hours for each alert: in which all is well, it fires, or it stays silent."""

_WORKER = {"job": "faust-oslrau", "instance": "w1"}
_PARTITION = {**_WORKER, "topic": "t", "partition": "0"}
_OF_WORKERS = {
    *("up", "process_start_time_seconds", "oslrau_broker_silent_seconds"),
    *("oslrau_rebalances_total", "oslrau_failed_openings_total", "oslrau_waiting_partitions"),
    "oslrau_setting",
}
MINUTES = 130

# A thousand scored records a second: values of a minute each, until minute 130.
_STEADY = f"0+60000x{MINUTES}"


def _series(name, values, /, **labels):
    base = _WORKER if name in _OF_WORKERS else _PARTITION
    inside = ", ".join(f'{key}="{value}"' for key, value in {**base, **labels}.items())
    return f"{name}{{{inside}}}", values


def setting(name, values):
    return _series("oslrau_setting", values, name=name)


def _records(outcome, values):
    return _series("oslrau_records_total", values, outcome=outcome)


def _log_likelihood(low, median):
    """Return quantiles of 5 and 50 %."""
    name = "oslrau_log_likelihood_quantile"
    return [_series(name, low, quantile="0.05"), _series(name, median, quantile="0.5")]


def incidents(severity, values):
    return _series("oslrau_incidents_total", values, severity=severity)


def open_incidents(severity, values):
    return _series("oslrau_incidents_open", values, severity=severity)


def damaged(values):
    return _series("oslrau_snapshot_failures_total", values, kind="damaged")


def _end_to_end(below_a_minute):
    return [
        _series("oslrau_end_to_end_seconds_bucket", below_a_minute, le="60.0"),
        _series("oslrau_end_to_end_seconds_bucket", _STEADY, le="300.0"),
        _series("oslrau_end_to_end_seconds_bucket", _STEADY, le="+Inf"),
    ]


HEALTHY = dict(
    [
        _series("up", f"1x{MINUTES}"),
        _series("process_start_time_seconds", f"1000x{MINUTES}"),
        _records("scored", _STEADY),
        _records("rejected", f"0+500x{MINUTES}"),
        _series("oslrau_missing_offsets_total", _STEADY),  # a mark of a transaction each
        _series("oslrau_anomalies_total", f"0+120x{MINUTES}"),
        _series("oslrau_consumer_lag_records", f"200000x{MINUTES}"),
        _series("oslrau_awaited_schemas", f"0x{MINUTES}"),
        _series("oslrau_network_nodes", f"800x{MINUTES}", kind="sum"),
        _series("oslrau_network_nodes", f"2800x{MINUTES}", kind="leaf"),
        *_end_to_end(f"0+59000x{MINUTES}"),
        *_log_likelihood(f"-12x{MINUTES}", f"-8x{MINUTES}"),
        _series("oslrau_broker_silent_seconds", f"1x{MINUTES}"),
        _series("oslrau_rebalances_total", f"3x{MINUTES}"),
        _series("oslrau_failed_openings_total", f"2x{MINUTES}"),
        _series("oslrau_waiting_partitions", f"0x{MINUTES}"),
        _series("oslrau_snapshot_age_seconds", f"55x{MINUTES}"),
        _series("oslrau_drift_events_total", f"4x{MINUTES}"),
        _series("oslrau_structure_changes_total", f"5x{MINUTES}", kind="denied"),
        _series("oslrau_last_record_timestamp_seconds", f"0+60x{MINUTES}"),
        _series("oslrau_silence_limit_seconds", f"300x{MINUTES}"),
        _series("oslrau_silences_total", f"5x{MINUTES}"),
        _series("oslrau_rate_changes_total", f"5x{MINUTES}"),
        _series("oslrau_field_changes_total", f"5x{MINUTES}", state="unit"),
        incidents("minor", f"3x{MINUTES}"),
        incidents("major", f"2x{MINUTES}"),
        open_incidents("minor", f"1x{MINUTES}"),
        open_incidents("major", f"0x{MINUTES}"),
        open_incidents("critical", f"0x{MINUTES}"),
        damaged(f"1x{MINUTES}"),  # long ago
        setting("alarm_rate", f"0.002x{MINUTES}"),
        setting("learner.max_nodes", f"4000x{MINUTES}"),
        setting("snapshot_interval", f"60x{MINUTES}"),
    ]
)

_STOPPED = [_records("scored", "0+60000x90 5400000x40"), _records("rejected", "0+500x90 45000x40")]


# What is bad from minute 90 on; the tests look at minute 120. And what is bad for a moment, or a
# little, or was long ago: no reason to call anybody.
_OF_ONE_SERIES = {
    "OslrauWorkerDown": ("up", "1x90 0x40", "1x119 0x10"),
    "OslrauNoWorker": ("up", "1x90", "1x119 _x10"),
    "OslrauWorkerRestarts": (
        "process_start_time_seconds", "1000x90 2000+180x39", "1000x90 2000x40"
    ),
    "OslrauBrokerAway": ("oslrau_broker_silent_seconds", "1x118 40+60x12", "1x110 25x20"),
    "OslrauRebalancing": ("oslrau_rebalances_total", "3x110 4+1x20", "3x110 6x20"),
    "OslrauPartitionsWaiting": ("oslrau_waiting_partitions", "0x90 2x40", "0x119 2x11"),
    "OslrauRestoreFailing": ("oslrau_failed_openings_total", "2x90 2+60x40", "2x115 2+60x2 122x13"),
    "OslrauSchemasAwaited": ("oslrau_awaited_schemas", "0x90 1x40", "0x119 1x11"),
    "OslrauSilence": ("oslrau_silences_total", "5x110 6x20", "5x80 6x50"),
    "OslrauRate": ("oslrau_rate_changes_total", "5x110 6x20", "5x80 6x50"),
    "OslrauLag": ("oslrau_consumer_lag_records", "200000x90 20000000x40", "200000x90 280000x40"),
    "OslrauRecordsMissing": ("oslrau_missing_offsets_total", "0+60000x90 5400000+500000x39",
                             "0+60000x90 5400000+110000x39"),
    "OslrauDrift": ("oslrau_drift_events_total", "4x110 5x20", "4x80 5x50"),
}  # fmt: skip

FIRING = {alert: [_series(name, bad)] for alert, (name, bad, _) in _OF_ONE_SERIES.items()} | {
    "OslrauSnapshotDamaged": [damaged("1x90 2x40")],
    "OslrauField": [_series("oslrau_field_changes_total", "5x110 6x20", state="unit")],
    "OslrauIncident": [incidents("major", "2x117 3x13")],
    "OslrauIncidentsOften": [incidents("minor", "3x70 4+1x59")],
    "OslrauNothingAssigned": [_records("scored", "0+60000x90"), _records("rejected", "0+500x90")],
    "OslrauSnapshotOld": [_series("oslrau_snapshot_age_seconds", "55x110 60+60x20")],
    "OslrauNotConsuming": _STOPPED,
    "OslrauNoRecords": [*_STOPPED, _series("oslrau_consumer_lag_records", f"0x{MINUTES}")],
    "OslrauPartitionSilent": [
        _series("oslrau_last_record_timestamp_seconds", "0+60x110 6600x20"),
        _series("oslrau_consumer_lag_records", "200000x90 0x40"),
    ],
    "OslrauScoresLate": _end_to_end("0+59000x90 5310000+1000x39"),
    "OslrauDeadLetters": [_records("rejected", "0+500x90 45000+1000x39")],
    "OslrauIncidentStale": _STOPPED,
    "OslrauAnomalies": [_series("oslrau_anomalies_total", "0+120x90 10800+2400x39")],
    "OslrauLogLikelihoodCollapse": _log_likelihood("-12x90 -60x40", "-8x90 -40x40"),
    "OslrauNodeBudget": [_series("oslrau_structure_changes_total", "5x90 6+1x39", kind="denied")],
}

SILENT = {alert: [_series(name, few)] for alert, (name, _, few) in _OF_ONE_SERIES.items()} | {
    "OslrauSnapshotDamaged": [damaged("0x20 1x110")],
    "OslrauField": [_series("oslrau_field_changes_total", "5x50 6x80", state="unit")],
    "OslrauIncident": [incidents("major", "2x90 3x40")],  # one that closed long ago
    "OslrauIncidentsOften": [incidents("minor", "3x70 4x10 5x50")],
    "OslrauNothingAssigned": [_records("scored", "0+60000x110"), _records("rejected", "0+500x110")],
    # Half an interval late; and a minute's worth where the interval is a second.
    "OslrauSnapshotOld": [
        _series("oslrau_snapshot_age_seconds", f"90x{MINUTES}"),
        setting("snapshot_interval", f"1x{MINUTES}"),
    ],
    "OslrauNotConsuming": [_records("scored", "0+60000x115 6900000x15")],
    "OslrauNoRecords": [_records("scored", "0+60000x110 6600000x20")],
    # Records wait: the worker is late, not the partition silent. One silence long ago.
    "OslrauPartitionSilent": [_series("oslrau_last_record_timestamp_seconds", "0+60x110 6600x20")],
    "OslrauScoresLate": _end_to_end("0+59000x90 5310000+57500x39"),
    "OslrauDeadLetters": [_records("rejected", "0+500x115 57500+1000x15")],
    "OslrauIncidentStale": [
        _records("scored", "0+60000x110 6600000x20"),
        _records("rejected", "0+500x110 55000x20"),
    ],
    # A tenth of the records, of a stream so slow that these are a few dozen.
    "OslrauAnomalies": [
        _records("scored", f"0+60x{MINUTES}"),
        _series("oslrau_anomalies_total", f"0+6x{MINUTES}"),
    ],
    # The lowest records alone, which is for OslrauAnomalies to tell.
    "OslrauLogLikelihoodCollapse": _log_likelihood("-12x90 -60x40", "-8x90 -11x40"),
    # A full network that grows no more, and one that grows.
    "OslrauNodeBudget": [
        _series("oslrau_network_nodes", f"3200x{MINUTES}", kind="leaf"),
        _series("oslrau_structure_changes_total", f"0+1x{MINUTES}", kind="mixture"),
    ],
}
