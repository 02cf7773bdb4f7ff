"""Incidents that belong together, as one notice; no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from faust_oslrau.app.offline.told import Contribution
from faust_oslrau.app.settings import Settings
from faust_oslrau.learner.scoring.incident import CLOSED, LEVELS, OPENED, UPDATED
from faust_oslrau.topics import KafkaRecord

MEMBERS = (
    *("notice", "state", "severity", "title", "topic", "since", "records", "fields", "entities"),
    *("incidents", "address"),
)
"""The names of what is told of a notice."""


class Incident(msgspec.Struct):
    """The members of an incident's event that notices are made of."""

    event: str
    state: str
    incident: str
    topic: str
    partition: int
    severity: float
    severity_name: str
    length: int
    contributions: list[Contribution]
    start_timestamp: int | None = None
    latest_timestamp: int | None = None
    entity: str | None = None

    @property
    def fields(self) -> list[str]:
        """The blamed fields, the most unusual first."""
        return [item.field for item in self.contributions]


_decode = msgspec.json.Decoder(Incident).decode


def incident_of(record: KafkaRecord) -> Incident | None:
    """Return the incident that a message of the anomalies topic tells of; None for others."""
    try:
        incident = _decode(record.value or b"")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    known = incident.event == "incident" and incident.severity_name in LEVELS
    return incident if known else None


@dataclass
class Notice:
    """Incidents that overlap in time and blame a common field: what people are told once.

    Attributes
    ----------
    incidents
        The incidents after their latest events, by id, in the order in which they opened.
    told
        The severity that was told last; None before.
    address
        Where people find its most severe incident; empty without the setting `page_url`.
    """

    incidents: dict[str, Incident] = field(default_factory=dict)
    told: str | None = None
    address: str = ""

    @property
    def name(self) -> str:
        """The id of its first incident."""
        return next(iter(self.incidents))

    @property
    def first(self) -> Incident:
        """The incident that opened it."""
        return self.incidents[self.name]

    @property
    def worst(self) -> Incident:
        """Its most severe incident."""
        return max(self.incidents.values(), key=lambda each: each.severity)

    @property
    def severity(self) -> str:
        """The name of the highest severity."""
        return max((each.severity_name for each in self.incidents.values()), key=LEVELS.index)

    @property
    def is_closed(self) -> bool:
        """Whether all of its incidents are closed."""
        return all(each.state == CLOSED for each in self.incidents.values())

    @property
    def fields(self) -> set[str]:
        """All fields that its incidents blame."""
        return {name for each in self.incidents.values() for name in each.fields}

    @property
    def since(self) -> int | None:
        """The earliest start in milliseconds since 1970 (UTC), if one is known."""
        times = [each.start_timestamp for each in self.incidents.values()]
        return min((time for time in times if time is not None), default=None)

    @property
    def title(self) -> str:
        """A sentence that says what is wrong."""
        worst, others = self.worst, len(self.incidents) - 1
        where = worst.entity or f"{worst.topic}/{worst.partition}"
        what = _described(worst.contributions[0]) if worst.contributions else "unusual records"
        return f"{where}: {what}" + (f", and {others} more incidents" if others else "")

    def as_dict(self, state: str) -> dict[str, Any]:
        """Return the notice as plain data, with the `MEMBERS` as names."""
        entities = {each.entity for each in self.incidents.values() if each.entity is not None}
        records = sum(each.length for each in self.incidents.values())
        values = (
            *(self.name, state, self.severity, self.title, self.first.topic, self.since, records),
            *(sorted(self.fields), sorted(entities), list(self.incidents), self.address),
        )
        return dict(zip(MEMBERS, values, strict=True))


class News(NamedTuple):
    """What became of a notice: its state, and the severity that was told before, if any."""

    state: str
    notice: Notice
    before: str | None


class Notices:
    """Groups incidents, and says when people are to be told.

    Parameters
    ----------
    settings
        Of which incidents people are told, and where they find them.
    """

    def __init__(self, settings: Settings) -> None:
        self.open: list[Notice] = []
        self._settings = settings.notify
        self._address_of = settings.incident_address

    def add(self, incident: Incident) -> News | None:
        """Take an event in; return what became of its notice, if people are to be told."""
        if not self._concerns(incident):
            return None
        notice = self._of(incident)
        if notice is None:
            return None
        notice.incidents[incident.incident] = incident
        notice.address = self._address_of(notice.worst.incident) or ""
        state = self._state(notice)
        if notice.is_closed:
            self.open.remove(notice)
        if state is None:
            return None
        before, notice.told = notice.told, notice.severity
        return News(state, notice, before)

    def _concerns(self, incident: Incident) -> bool:
        fields, entities = self._settings.fields, self._settings.entities
        return (fields is None or not set(fields).isdisjoint(incident.fields)) and (
            entities is None or incident.entity in entities
        )

    def _of(self, incident: Incident) -> Notice | None:
        for notice in self.open:
            if incident.incident in notice.incidents:
                return notice
        if incident.state == CLOSED:  # it opened before the first event that was read
            return None
        for notice in self.open:
            if not notice.fields.isdisjoint(incident.fields):
                return notice
        self.open.append(Notice())
        return self.open[-1]

    def _state(self, notice: Notice) -> str | None:
        if notice.is_closed:
            return CLOSED if notice.told else None
        rank = LEVELS.index(notice.severity)
        if notice.told is None:
            return OPENED if rank >= LEVELS.index(self._settings.severity) else None
        return UPDATED if rank > LEVELS.index(notice.told) else None


def _described(item: Contribution) -> str:
    if item.category is not None:
        usual = "another" if item.expected_category is None else item.expected_category
        return f"{item.field} is {item.category}, expected {usual}"
    text = f"{item.field} is {_number(item.value)}"
    if item.expected is None or item.deviation is None:
        return text
    return f"{text}, expected {_number(item.expected)} ± {_number(item.deviation)}"


def _number(value: float | None) -> str:
    return "missing" if value is None else f"{value:.4g}"
