"""The incidents of a demo, as the anomalies topic tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self


class DemoIncident(NamedTuple):
    """An incident after its latest event.

    Attributes
    ----------
    name
        Its id.
    entity
        The machine that it is about; None if machines are scored alike.
    first, opened, last
        The offsets of its start, of the record that opened it, and of its latest evidence.
    blamed
        The names of its fields, the most blamed first.
    """

    name: str
    partition: int
    entity: str | None
    first: int
    opened: int
    last: int
    is_open: bool
    severity: float
    severity_name: str
    blamed: tuple[str, ...]

    @classmethod
    def of_event(cls, event: Mapping[str, Any]) -> Self:
        """Return the incident of an event of the anomalies topic."""
        return cls(
            event["incident"],
            event["partition"],
            event.get("entity"),
            event["start_offset"],
            event["opened_offset"],
            event["latest_offset"],
            event["state"] != "closed",
            event["severity"],
            event["severity_name"],
            tuple(item["field"] for item in event["contributions"]),
        )
