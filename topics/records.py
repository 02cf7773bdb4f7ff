"""The types of source records and of output messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

Headers = Sequence[tuple[str, bytes]]

_TRACE = frozenset({"traceparent", "tracestate"})


class KafkaRecord(Protocol):
    """A record as a Kafka client returns it; aiokafka's ``ConsumerRecord`` is one."""

    @property
    def topic(self) -> str:
        """Topic that the record was read from."""

    @property
    def partition(self) -> int:
        """Partition of the topic."""

    @property
    def offset(self) -> int:
        """Offset in the partition's log."""

    @property
    def timestamp(self) -> int | None:
        """Milliseconds since 1970 (UTC); None without a timestamp."""

    @property
    def key(self) -> bytes | None:
        """Key of the record."""

    @property
    def value(self) -> bytes | None:
        """Value of the record; None is a tombstone."""

    @property
    def headers(self) -> Headers:
        """Headers of the record, in order."""


class Record(NamedTuple):
    """A `KafkaRecord` without a broker, such as a row of a file."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class OutMessage(NamedTuple):
    """A message to send, with the offset of its source record."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: tuple[tuple[str, bytes], ...] = ()


# Like `OutMessage._make`, without a Python function call for each message.
_make = partial(tuple.__new__, OutMessage)


def out_messages(
    offsets: Iterable[int],
    keys: Iterable[bytes | None],
    values: Iterable[bytes | None],
    timestamps: Iterable[int | None],
    headers: Iterable[Headers],
) -> list[OutMessage]:
    """Return messages in half the time of creating them one by one."""
    return list(map(_make, zip(offsets, keys, values, timestamps, headers, strict=True)))


def trace_of(record: KafkaRecord) -> tuple[tuple[str, bytes], ...]:
    """Return the headers that join what follows from a record to its trace (W3C trace context)."""
    if not record.headers:
        return ()
    return tuple(header for header in record.headers if header[0] in _TRACE)
