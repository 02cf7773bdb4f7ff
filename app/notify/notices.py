"""What people are told of events: incidents that belong together as one notice; no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from faust_oslrau.app.offline.told import Contribution, Message, message_of
from faust_oslrau.app.offline.told_lines import category, described
from faust_oslrau.app.settings import Settings
from faust_oslrau.learner.scoring.incident import CLOSED, LEVELS, OPENED, UPDATED
from faust_oslrau.topics import KafkaRecord

MEMBERS = (
    *("notice", "event", "state", "severity", "title", "topic", "since"),
    *("records", "fields", "entities", "incidents", "address"),
)
"""The names of what is told of a notice."""

HAPPENED = "happened"
"""State of an event without an end."""

# What begins and ends, in the words of incidents.
_STATES = {
    "began": OPENED,
    "unusual": OPENED,
    "ended": CLOSED,
    "usual": CLOSED,
    **{state: state for state in (OPENED, UPDATED, CLOSED)},
}
_TOGETHER_MS = 3_600_000
"""Incidents of one notice begin at most so long after another one of it."""

_GONE_MS = 7 * 86_400_000
"""An entity that is silent for so long is not expected any more."""

Key = tuple[str | None, ...]
_KINDS = {"drift", "entity", "field", "incident", "rate", "silence"}


@dataclass(frozen=True, slots=True)
class Event:
    """An event, as far as notices need it.

    Attributes
    ----------
    message
        What it tells.
    state
        Whether something `OPENED`, was `UPDATED`, `CLOSED`, or `HAPPENED` without an end.
    """

    message: Message
    state: str

    @property
    def setting(self) -> str:
        """The name of its kind in the setting `notify.events`."""
        if self.message.event == "entity":
            return "new_entities" if self.message.state == "new" else "unusual_entities"
        return f"{self.message.event}s"

    @property
    def is_of_incident(self) -> bool:
        """Whether it tells of an incident."""
        return self.message.event == "incident"

    @property
    def key(self) -> Key:
        """What is the same as something begins, gets worse and ends."""
        told = self.message
        whose = told.entity if told.category is None else told.category
        return told.event, told.topic, str(told.partition), told.incident, whose

    @property
    def place(self) -> Key:
        """Where there is one incident at a time."""
        return self.message.topic, str(self.message.partition), self.message.entity

    @property
    def name(self) -> str:
        """The id of the incident; of others: place, kind, and entity or field."""
        told = self.message
        if told.incident is not None:
            return told.incident
        parts = (told.topic, told.partition, told.offset, told.event, told.entity or told.field)
        return "/".join(str(part) for part in parts if part is not None)

    @property
    def severity(self) -> str:
        """The name of its severity; what is no incident is minor."""
        return str(self.message.severity_name) if self.is_of_incident else LEVELS[0]

    @property
    def since(self) -> int | None:
        """When it began, in milliseconds since 1970 (UTC), if that is known."""
        told = self.message
        times = (told.start_timestamp, told.since, told.last_timestamp, told.timestamp)
        return next((time for time in times if time is not None), None)


def event_of(record: KafkaRecord) -> Event | None:
    """Return the event that a message of the anomalies topic tells of; None for others."""
    told = message_of(record)
    if told is None or told.event not in _KINDS:
        return None
    if told.event == "incident" and (told.incident is None or told.severity_name not in LEVELS):
        return None
    if told.event == "silence" and told.entity is None:  # of a partition, known when it is over
        return Event(told, HAPPENED)
    return Event(told, _STATES.get(told.state, HAPPENED))


@dataclass
class Notice:
    """What people are told once: incidents that overlap and blame a common field, or one event.

    Attributes
    ----------
    first
        What opened it, as it opened: what names the notice stays, whatever is told later.
    events
        The latest event of each incident, by key, in the order in which they opened.
    since
        The earliest start in milliseconds since 1970 (UTC), if one is known.
    told
        The severity that was told last; None before.
    address
        Where people find its most severe incident; empty without the setting `page_url`.
    """

    first: Event
    events: dict[Key, Event] = field(default_factory=dict)
    since: int | None = None
    told: str | None = None
    address: str = ""

    def take(self, event: Event) -> None:
        """Add an event, in place of an earlier one of the same incident."""
        self.events[event.key] = event
        times = [time for time in (self.since, event.since) if time is not None]
        self.since = min(times, default=None)

    @property
    def name(self) -> str:
        """The id of what opened it."""
        return self.first.name

    @property
    def worst(self) -> Event:
        """The latest event of its most severe incident."""
        return max(self.events.values(), key=lambda each: each.message.severity or 0.0)

    @property
    def severity(self) -> str:
        """The name of the highest severity."""
        return max((each.severity for each in self.events.values()), key=LEVELS.index)

    @property
    def is_open(self) -> bool:
        """Whether any of it is not over."""
        return any(each.state in (OPENED, UPDATED) for each in self.events.values())

    @property
    def fields(self) -> set[str]:
        """All fields that it is about."""
        return {name for each in self.events.values() for name in each.message.fields}

    def includes(self, event: Event) -> bool:
        """Whether an incident that opens is one more of these.

        One that lasts, or whose entity sends no more, does not hide what begins much later.
        """
        began = [each.since for each in self.events.values() if each.since is not None]
        is_late = (
            event.since is not None and event.since - max(began, default=event.since) > _TOGETHER_MS
        )
        is_alike = not self.fields.isdisjoint(event.message.fields)
        return self.first.is_of_incident and is_alike and not is_late

    @property
    def title(self) -> str:
        """A sentence that says what is wrong."""
        worst, others = self.worst.message, len(self.events) - 1
        where = worst.entity or f"{worst.topic}/{worst.partition}"
        more = f", and {others} more incident{'s' * (others > 1)}" if others else ""
        return f"{where}: {_described(worst)}{more}"

    def as_dict(self, state: str) -> dict[str, Any]:
        """Return the notice as plain data, with the `MEMBERS` as names."""
        told = [each.message for each in self.events.values()]
        entities = {each.entity for each in told if each.entity is not None}
        incidents = [each.incident for each in told if each.incident is not None]
        records = sum(each.length or each.records or 0 for each in told)
        first = self.first.message
        values = (
            *(self.name, first.event, state, self.severity, self.title, first.topic, self.since),
            *(records, sorted(self.fields), sorted(entities), incidents, self.address),
        )
        return dict(zip(MEMBERS, values, strict=True))


class News(NamedTuple):
    """What became of a notice: its state, and the severity that was told before, if any."""

    state: str
    notice: Notice
    before: str | None


class Notices:
    """Groups events, and says when people are to be told.

    Parameters
    ----------
    settings
        Of which events people are told, and where they find incidents.
    """

    def __init__(self, settings: Settings) -> None:
        self.open: list[Notice] = []
        self._settings = settings.notify
        self._address_of = settings.incident_address

    def ended_by(self, event: Event) -> Event | None:
        """Return the end of the incident in whose place another one opens, which nothing closed.

        Its model was given up, as by ``inspect --reset`` or with the topic.
        """
        if not event.is_of_incident or event.state != OPENED:
            return None
        for former in (each for notice in self.open for each in notice.events.values()):
            is_open = former.is_of_incident and former.state != CLOSED
            if is_open and former.place == event.place and former.key != event.key:
                return replace(former, state=CLOSED)
        return None

    def gone(self, now: float) -> list[Event]:
        """Return the ends of the silences of entities that have not come back for a week.

        ``now`` is in milliseconds since 1970.
        """
        told = (each for notice in self.open for each in notice.events.values())
        return [
            replace(each, state=CLOSED)
            for each in told
            if each.message.event == "silence" and now - (each.since or now) > _GONE_MS
        ]

    def add(self, event: Event) -> News | None:
        """Take an event in; return what became of its notice, if people are to be told."""
        notice = self._known(event) or self._new(event)
        if notice is None:
            return None
        notice.take(event)
        notice.address = self._address(notice.worst.message.incident)
        state = self._state(notice, event)
        self.open = [each for each in self.open if each.is_open]
        if state is None:
            return None
        before, notice.told = notice.told, notice.severity
        return News(state, notice, before)

    def _address(self, incident: str | None) -> str:
        return "" if incident is None else self._address_of(incident) or ""

    def _known(self, event: Event) -> Notice | None:
        if event.state == HAPPENED:
            return None
        return next((each for each in self.open if event.key in each.events), None)

    def _new(self, event: Event) -> Notice | None:
        """Return the notice of what begins, which may be an open one."""
        if event.state == CLOSED or not self._concerns(event):  # it may have begun before
            return None
        for notice in self.open if event.is_of_incident else ():
            if notice.includes(event):
                return notice
        notice = Notice(event)
        self.open.append(notice)
        return notice

    def _concerns(self, event: Event) -> bool:
        chosen, told = self._settings, event.message
        return (
            event.setting in chosen.events
            and (chosen.fields is None or not set(chosen.fields).isdisjoint(told.fields))
            and (chosen.entities is None or told.entity in chosen.entities)
        )

    def _state(self, notice: Notice, event: Event) -> str | None:
        if event.state == HAPPENED:
            return HAPPENED
        if not notice.is_open:
            return CLOSED if notice.told else None
        rank = LEVELS.index(notice.severity)
        if notice.told is None:
            least = LEVELS.index(self._settings.severity) if event.is_of_incident else 0
            return OPENED if rank >= least else None
        return UPDATED if rank > LEVELS.index(notice.told) else None


def _described(told: Message) -> str:
    if told.event != "incident":
        return ": ".join(filter(None, (told.what, described(told))))
    return _blamed(told.contributions[0]) if told.contributions else "unusual records"


def _blamed(item: Contribution) -> str:
    if item.category is not None:
        return f"{item.field} is {category(item)}"
    text = f"{item.field} is {_number(item.value)}"
    if item.expected is None or item.deviation is None:
        return text
    return f"{text}, expected {_number(item.expected)} ± {_number(item.deviation)}"


def _number(value: float | None) -> str:
    return "missing" if value is None else f"{value:.4g}"
