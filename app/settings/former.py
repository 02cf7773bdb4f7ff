"""Settings that earlier versions had, and what to write instead."""

from __future__ import annotations

from .learner_settings import OSLRAU_PARAMETERS

_SEVERITY = "leave it out, incidents are major from a severity of 50 and critical from 75"

FORMER = {
    "anomalies": 'write events = ["records"], ["incidents"] or both, with what else it is to list',
    "commit_interval": "leave it out, offsets are committed every second",
    "entity_events": 'write events with "new_entities" or "unusual_entities"',
    "forecast_metrics": "write forecasts = true, with which the first 16 fields have metrics",
    "incidents.critical": _SEVERITY,
    "incidents.major": _SEVERITY,
    "log_format": "leave it out, the log is readable on a terminal and JSON elsewhere",
    "max_former_entities": "leave it out, as many as max_entities are kept",
    "max_poll_records": "leave it out, at most 4,096 records are processed at a time",
    "max_record_bytes": "write max_message_bytes, larger records are dead letters",
    "silences": 'write events with "silences"',
    "snapshot_dir": 'write snapshots = "folder:PATH"',
    "snapshot_records": "leave it out, or write a shorter snapshot_interval",
    "stretches": "leave it out, incidents gather small deviations that last, and history shows "
    "those that only their past makes unusual",
    "learner.adapt_after": "leave it out, the model follows a change by itself",
    "learner.random_state": "leave it out, nothing is drawn at random",
    "learner.kind": "leave it out, or write learner.mixtures = true for the kind stacked",
    "learner.tree_nodes": "leave it out, mixtures have up to a third of learner.max_nodes",
    "snapshots_topic": 'write snapshots = "topic:NAME"',
    **{
        f"learner.{name}": f"write {name} in the table [learner.oslrau]"
        for name in OSLRAU_PARAMETERS
    },
}
"""What to write instead of each, by its name."""
