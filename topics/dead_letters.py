"""Encodes dead letters: records that could not be scored, unchanged, with the reason in headers."""

from __future__ import annotations

from .records import KafkaRecord, OutMessage
from .rejections import Rejection

_OWN = "oslrau-"
_REASON = f"{_OWN}reason"
# A detail may quote field names, which come from outside and may be as long as a message.
_MAX_DETAIL = 500
# Kafka's framing: 61 bytes of a batch of one, at most 10 + 5 per length and 10 per time and offset.
_FRAME_BYTES = 128
_HEADER_FRAME_BYTES = 10


def dead_letter(record: KafkaRecord, rejection: Rejection, max_bytes: int) -> OutMessage:
    """Return the record with its key, value and headers, and with headers for the rejection.

    Of a record that was a dead letter before, the headers of that rejection are left out.
    If this is larger than `max_bytes`, the message has only the rejection's headers, and
    `oslrau-left-out-bytes` with the size of the whole.
    """
    reason = _reason_headers(record, rejection)
    others = tuple(header for header in record.headers if not header[0].startswith(_OWN))
    headers = (*others, *reason)
    size = message_bytes(record.key, record.value, headers)
    if size <= max_bytes:
        return OutMessage(record.offset, record.key, record.value, record.timestamp, headers)
    left_out = ("oslrau-left-out-bytes", str(size).encode())
    return OutMessage(record.offset, None, None, record.timestamp, (*reason, left_out))


def is_dead_letter(message: KafkaRecord) -> bool:
    """Return whether a message of an output topic is a dead letter."""
    return any(name == _REASON for name, _ in message.headers)


def message_bytes(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes], ...] = ()
) -> int:
    """Return an upper bound of a message's size in Kafka, in bytes."""
    contents = [key or b"", value or b""]
    contents += [name.encode() + (text or b"") for name, text in headers]
    return _FRAME_BYTES + _HEADER_FRAME_BYTES * len(headers) + sum(map(len, contents))


def place_headers(topic: str, partition: int, offset: int) -> tuple[tuple[str, bytes], ...]:
    """Return headers that name a record's topic, partition and offset."""
    texts = {
        "oslrau-topic": topic,
        "oslrau-partition": str(partition),
        "oslrau-offset": str(offset),
    }
    return tuple((name, text.encode()) for name, text in texts.items())


def _reason_headers(record: KafkaRecord, rejection: Rejection) -> tuple[tuple[str, bytes], ...]:
    return (
        (_REASON, rejection.reason.value.encode()),
        ("oslrau-detail", rejection.detail[:_MAX_DETAIL].encode(errors="backslashreplace")),
        *place_headers(record.topic, record.partition, record.offset),
    )
