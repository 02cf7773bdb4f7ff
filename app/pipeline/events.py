"""Events of a partition, as messages of the anomalies topic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from faust_oslrau.learner import Aspect, Change, EntityEvent, IncidentEvent, RateChange, Silence
from faust_oslrau.learner.scoring.evidence import Place
from faust_oslrau.topics import Columns, FieldChange, contributions

Source = Mapping[str, Any]
"""The place of the record that an event comes with."""


def encode_drift(source: Source, change: Change) -> bytes:
    """Return the event of a drift."""
    message = {"statistic": change.statistic, "records": change.records}
    return orjson.dumps({"event": "drift", **source, **message})


def encode_incident(source: Source, event: IncidentEvent, columns: Columns) -> bytes:
    """Return the event of an incident that a record opened, updated or closed."""
    incident = event.incident
    message = {
        "event": "incident",
        **source,
        "state": event.state,
        # It follows from the record that opened it.
        "incident": f"{source['topic']}/{source['partition']}/{incident.opened.offset}",
        "severity": round(incident.severity, 1),
        "severity_name": incident.severity_name,
        "evidence": incident.evidence,
        "length": incident.length,
        "anomalies": incident.anomalies,
        **_place("opened", incident.opened),
        **_place("start", incident.start),
        **_place("peak", incident.peak),
        "peak_p_value": incident.p_value,
        **_place("latest", incident.latest),
        **({} if incident.entity is None else {"entity": incident.entity}),
        "contributions": contributions(event.blame, 0, columns),
    }
    return orjson.dumps(message)


def encode_entity_event(source: Source, event: EntityEvent, fields: Sequence[str]) -> bytes:
    """Return the event of an entity that is new, unusual as a whole, or usual again."""
    message = {"event": "entity", **source, "state": event.state, "entity": event.entity}
    if not math.isnan(event.p_value):
        message["entity_p_value"] = event.p_value
    if event.aspects:
        message["aspects"] = [aspect_data(aspect, fields) for aspect in event.aspects]
    return orjson.dumps(message)


def aspect_data(aspect: Aspect, fields: Sequence[str]) -> dict[str, Any]:
    """Return an aspect as plain data; NaN becomes null in JSON."""
    return {
        "aspect": aspect.name,
        "field": None if aspect.column is None else fields[aspect.column],
        "value": aspect.value,
        "usual": aspect.usual,
        "deviations": aspect.deviations,
    }


def encode_silence(source: Source, silence: Silence) -> bytes:
    """Return the event of a silence that a record shows or ends."""
    message = {
        "event": "silence",
        **source,
        "state": silence.state,
        **({} if silence.entity is None else {"entity": silence.entity}),
        "last_offset": silence.last_offset,
        "last_timestamp": _time(silence.last_timestamp),
        "seconds": silence.seconds,
        "limit_seconds": silence.limit,
    }
    return orjson.dumps(message)


def encode_rate_change(source: Source, change: RateChange) -> bytes:
    """Return the event of a change of how many records come."""
    message = {
        "event": "rate",
        **source,
        "state": change.state,
        **_whose(change),
        "since": change.since,
        "window_seconds": change.seconds,
        "records": change.records,
        "expected": change.expected,
        "low": change.low,
        "high": change.high,
    }
    return orjson.dumps(message)


def encode_field_change(source: Source, change: FieldChange) -> bytes:
    """Return the event of a field that has changed."""
    message = {"event": "field", **source, "state": change.state, "field": change.field}
    if change.now is not None:
        message |= {"before": change.before, "now": change.now}
    if change.factor is not None:
        message["factor"] = change.factor
    return orjson.dumps(message)


def _place(name: str, place: Place) -> dict[str, int | None]:
    return {f"{name}_offset": place.offset, f"{name}_timestamp": _time(place.timestamp)}


def _time(timestamp: int) -> int | None:
    return None if timestamp < 0 else timestamp


def _whose(change: RateChange) -> dict[str, str]:
    if change.entity is None:
        return {}
    if change.by is None:
        return {"entity": change.entity}
    return {"field": change.by, "category": change.entity}
