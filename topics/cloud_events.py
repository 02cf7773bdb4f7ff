"""Headers that make a message of the anomalies topic a CloudEvent 1.0, in Kafka's binary mode."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from .times import LATEST

_FIRST = datetime(1970, 1, 1, tzinfo=UTC)


def source_address(application: str, topic: str, partition: int) -> str:
    """Return the address of the partition that events of an application are about."""
    return f"/{quote(application, safe='')}/{quote(topic)}/{partition}"


def event_headers(
    source: str,
    offset: int,
    time: int | None,
    kind: str,
    state: str | None = None,
    name: str | None = None,
    content_type: str = "application/json",
) -> tuple[tuple[str, bytes], ...]:
    """Return the headers of an event; all of them follow from the log and the settings.

    Parameters
    ----------
    source
        The `source_address` of its partition.
    offset, time
        The record that caused the event, and when that happened, in milliseconds since 1970 (UTC).
    kind, state, name
        What else there may be only one of at an offset. An entity or a field may have any name, so
        its characters beyond those of addresses are escaped.
    content_type
        What the message is.
    """
    kinds = [kind] if state is None else [kind, state]
    named = [] if name is None else [quote(name, safe="")]
    headers = {
        "ce_specversion": "1.0",
        "ce_id": "/".join([str(offset), *kinds, *named]),
        "ce_source": source,
        "ce_type": ".".join(["oslrau", *kinds]),
        **({} if time is None or not 0 <= time <= LATEST else {"ce_time": _timestamp(time)}),
        "content-type": content_type,
    }
    return tuple((name, text.encode()) for name, text in headers.items())


def _timestamp(milliseconds: int) -> str:
    """Return a time as RFC 3339 wants it."""
    return (_FIRST + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds")
