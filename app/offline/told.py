"""Reads what a message of an output topic tells: what happened, where, when, how unusual it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import orjson

from faust_oslrau.topics import KEY, EntityReader, KafkaRecord, Record, is_dead_letter

from .output_files import letter_data


class Told(NamedTuple):
    """What a message tells, not yet made safe for a terminal.

    Attributes
    ----------
    what
        What happened, such as "incident opened".
    place
        Topic, partition and offset of the source record.
    timestamp
        Its time in milliseconds since 1970, if it has one.
    entity
        Its entity, or else its key.
    fields
        The blamed fields, the most unusual first.
    message
        The members of a score, an anomaly or an event; None for any other message.
    detail
        Of any other message: what it is.
    """

    what: str
    place: str
    timestamp: int | None
    entity: str | None
    fields: tuple[str, ...] = ()
    message: Message | None = None
    detail: str = ""


class Contribution(msgspec.Struct):
    """A field to blame."""

    field: str
    nats: float | None = None
    usual: float | None = None
    value: float | None = None
    expected: float | None = None
    deviation: float | None = None
    category: str | None = None
    expected_category: str | None = None


class Aspect(msgspec.Struct):
    """One way in which an entity differs from the others."""

    aspect: str
    field: str | None = None
    value: float | None = None
    usual: float | None = None
    deviations: float | None = None


class Message(msgspec.Struct):
    """The members that are shown; docs/messages.md explains them."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None = None
    event: str | None = None
    state: str = ""
    incident: str | None = None
    entity: str | None = None
    log_likelihood: float | None = None
    p_value: float | None = None
    is_anomaly: bool = False
    n_learned: int | None = None
    severity: float | None = None
    severity_name: str | None = None
    length: int | None = None
    start_timestamp: int | None = None
    last_timestamp: int | None = None
    peak_p_value: float | None = None
    entity_p_value: float | None = None
    # null in Parquet
    contributions: list[Contribution] | None = None
    aspects: list[Aspect] = msgspec.field(default_factory=list)
    records: int | None = None
    low: int | None = None
    high: int | None = None
    since: int | None = None
    window_seconds: float | None = None
    seconds: float | None = None
    limit_seconds: float | None = None
    field: str | None = None
    before: str | None = None
    now: str | None = None
    factor: float | None = None
    category: str | None = None
    # Not parsed: numbers in it may be beyond a double.
    record: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it is about, each once, the most unusual first."""
        named = [item.field for item in self.contributions or ()]
        named += [aspect.field for aspect in self.aspects if aspect.field is not None]
        named += [] if self.field is None else [self.field]
        return tuple(dict.fromkeys(named))

    @property
    def what(self) -> str:
        """What happened, such as "incident opened"."""
        if self.event is None:
            return "anomaly" if self.is_anomaly else "score"
        state = "worsened" if self.state == "updated" else self.state
        return f"{self.event} {state}".strip()


_decode = msgspec.json.Decoder(Message).decode
_check = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_UNREADABLE = (ValueError, RecursionError)
# JSON allows these in strings as they are, but a terminal may obey them.
_CONTROLS = re.compile("[\x7f-\x9f]")
_MOST_DESCRIBED = 80


def message_of(record: KafkaRecord) -> Message | None:
    """Return what a score, an anomaly or an event tells; None for any other message."""
    try:
        message = _decode(record.value or b"")
    except _UNREADABLE:
        return None
    return message if message.event or message.n_learned is not None else None


class MessageReader:
    """Reads messages.

    Parameters
    ----------
    entity
        The setting `entity`: an anomaly does not name its entity, but holds the record that does.
    """

    def __init__(self, entity: str | None) -> None:
        self._entities = None if entity in (None, KEY) else EntityReader(str(entity))

    def read(self, record: KafkaRecord) -> Told:
        """Return what a message tells; never fails."""
        headers = {name: _text(content) or "" for name, content in record.headers}
        if "oslrau-reason" in headers:
            detail = f"{headers['oslrau-reason']}: {headers.get('oslrau-detail', '')}"
            return _of_headers("rejected", record, headers, detail)
        message = message_of(record)
        if message is not None:
            return self._of_message(record, message)
        if "oslrau-left-out-bytes" in headers:
            size = f"{headers['oslrau-left-out-bytes']} bytes did not fit into the topic"
            return _of_headers("left out", record, headers, size)
        return _of_other(record)

    def _of_message(self, record: KafkaRecord, message: Message) -> Told:
        place = f"{message.topic}/{message.partition}@{message.offset}"
        time = record.timestamp if message.timestamp is None else message.timestamp
        entity = message.entity if message.entity is not None else self._entity(record, message)
        return Told(message.what, place, time, entity, message.fields, message)

    def _entity(self, record: KafkaRecord, message: Message) -> str | None:
        """Return the entity that an anomaly's record names, or else the key."""
        value = bytes(message.record).lstrip()
        if self._entities is not None and value.startswith(b"{"):
            (entity,) = self._entities.read([Record("", 0, 0, None, None, value)])
            if entity is not None:
                return _text(entity)
        return _text(record.key)


def as_json(record: KafkaRecord) -> bytes:
    """Return a message as one line of JSON.

    That is the value of a score, an anomaly or an event. Of others it is an object of key, value
    and headers, as `replay` writes dead letters.
    """
    if not is_dead_letter(record):
        try:
            _check(record.value or b"")
            return _one_line(record.value or b"")
        except _UNREADABLE:
            pass
    return _one_line(orjson.dumps(letter_data(record)))


def _one_line(value: bytes) -> bytes:
    """Return the same JSON without line ends, which an anomaly's record may have, and controls."""
    text = value.decode().replace("\n", " ").replace("\r", " ")
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _of_headers(what: str, record: KafkaRecord, headers: Mapping[str, str], detail: str) -> Told:
    topic, partition, offset = (
        headers.get(f"oslrau-{name}", "?") for name in ("topic", "partition", "offset")
    )
    place = f"{topic}/{partition}@{offset}"
    return Told(what, place, record.timestamp, _text(record.key), detail=detail)


def _of_other(record: KafkaRecord) -> Told:
    place = f"{record.topic}/{record.partition}@{record.offset}"
    detail = _described(record.value)
    return Told("not understood", place, record.timestamp, _text(record.key), detail=detail)


def _described(value: bytes | None) -> str:
    if value is None:
        return "no value"
    return f"{len(value):,} bytes: {_text(value[:_MOST_DESCRIBED])}"


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="backslashreplace")
