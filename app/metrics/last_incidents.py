"""The last incidents of a partition, each as its latest event tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest
from operator import attrgetter
from typing import Any, NamedTuple

import orjson

from faust_oslrau.learner import Incident
from faust_oslrau.learner.scoring.incident import CLOSED, OPENED

INCIDENTS = 50
"""The number of retained incidents of a partition."""

# An incident lists up to 16 fields, whose names may be long. The page shows the first ones.
_MAX_BYTES = 16 * 1024
_MOST_FIELDS = 3


class NotedIncident(NamedTuple):
    """The latest event of an incident.

    Attributes
    ----------
    noted
        When the worker got to know it, in seconds since 1970 (UTC).
    since
        When the worker got to know that it opened; None if it learned that from the topic.
    offset
        The offset of the record that caused the event.
    is_open
        Whether the incident is open after it.
    opened
        When the incident opened, in milliseconds since 1970 (UTC).
    content
        The event, a JSON object.
    """

    noted: float
    since: float | None
    offset: int
    is_open: bool
    opened: float
    content: bytes

    def as_json(self) -> bytes:
        """Return the event, with when the worker got to know what."""
        noted = orjson.dumps({"noted": self.noted, "since": self.since})
        return noted[:-1] + b"," + self.content[1:]


class LastIncidents:
    """The last incidents of a partition, by their ids."""

    def __init__(self) -> None:
        self._latest: dict[str, NotedIncident] = {}

    def __iter__(self) -> Iterator[NotedIncident]:
        """Iterate over the incidents, in no particular order."""
        return iter(self._latest.values())

    def get(self, incident: str) -> NotedIncident | None:
        """Return the incident of an id, if it is known."""
        return self._latest.get(incident)

    def add(self, event: dict[str, Any], noted: float, *, is_past: bool = False) -> None:
        """Add an event of an incident; one that is older than the known one changes nothing.

        `is_past` says that the event comes from the topic.
        """
        known = self._latest.get(event["incident"])
        if known is not None and known.offset >= event["offset"]:
            return
        opened = event["opened_timestamp"]
        begun = None if is_past or event["state"] != OPENED else noted
        self._latest[event["incident"]] = NotedIncident(
            noted,
            begun if known is None else known.since,
            event["offset"],
            event["state"] != CLOSED,
            1000 * noted if opened is None else opened,
            _content(event),
        )
        if len(self._latest) > INCIDENTS:
            oldest = min(self._latest, key=lambda name: _urgency(self._latest[name]))
            del self._latest[oldest]

    def close_others(self, still_open: Iterable[Incident], noted: float) -> None:
        """Close all but those that a model has open: the model that had the others is gone."""
        offsets = {str(incident.opened.offset) for incident in still_open}
        for name, known in self._latest.items():
            if known.is_open and name.rpartition("/")[2] not in offsets:
                content = _content({**orjson.loads(known.content), "state": CLOSED})
                self._latest[name] = known._replace(noted=noted, is_open=False, content=content)


def most_urgent(incidents: Iterable[NotedIncident], number: int) -> list[NotedIncident]:
    """Return the open incidents, then the closed ones, of each kind the last opened first."""
    return nlargest(number, incidents, key=_urgency)


_urgency = attrgetter("is_open", "opened", "offset")


def _content(event: dict[str, Any]) -> bytes:
    """Return an event as JSON, without fields if their names are too long."""
    content = orjson.dumps(event)
    if len(content) <= _MAX_BYTES:
        return content
    few = event.get("contributions", [])[:_MOST_FIELDS]
    content = orjson.dumps({**event, "contributions": few})
    return content if len(content) <= _MAX_BYTES else orjson.dumps({**event, "contributions": []})
