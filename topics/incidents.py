"""Encodes the events of incidents for the anomalies topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import orjson

from .scores import Blame, Columns, contributions


class Place(Protocol):
    """The record of an incident's start, peak or end; `learner` implements it."""

    @property
    def offset(self) -> int:
        """Its offset."""

    @property
    def timestamp(self) -> int:
        """Its timestamp in milliseconds since 1970 (UTC), -1 without one."""


class Incident(Protocol):
    """An incident as it stands after a record; `learner.Incident` implements it."""

    @property
    def opened(self) -> Place:
        """The record that completed the evidence."""

    @property
    def start(self) -> Place:
        """The record since which records have deviated."""

    @property
    def peak(self) -> Place:
        """The most unusual record."""

    @property
    def latest(self) -> Place:
        """The record with the latest evidence."""

    @property
    def p_value(self) -> float:
        """The p-value of the peak."""

    @property
    def length(self) -> int:
        """The number of records from the start to the latest."""

    @property
    def anomalies(self) -> int:
        """The number of anomalies among these."""

    @property
    def evidence(self) -> float:
        """The evidence in nats."""

    @property
    def severity(self) -> float:
        """From 0 to 100."""

    @property
    def severity_name(self) -> str:
        """The name of the severity: minor, major or critical."""

    @property
    def entity(self) -> str | None:
        """The entity of the record that opened it; None without entities."""


def encode_incident(
    source: Mapping[str, Any], state: str, incident: Incident, blame: Blame, columns: Columns
) -> bytes:
    """Return the event of an incident that `source`, a record's place, opened, updated or closed.

    `blame` has one row: the averages over the incident's records.
    """
    message = {
        "event": "incident",
        **source,
        "state": state,
        "incident": incident_id(source["topic"], source["partition"], incident),
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
        "contributions": contributions(blame, 0, columns),
    }
    return orjson.dumps(message)


def incident_id(topic: str, partition: int, incident: Incident) -> str:
    """Return the id of an incident, which follows from the record that opened it."""
    return f"{topic}/{partition}/{incident.opened.offset}"


def _place(name: str, place: Place) -> dict[str, int | None]:
    timestamp = None if place.timestamp < 0 else place.timestamp
    return {f"{name}_offset": place.offset, f"{name}_timestamp": timestamp}
