"""Shortens messages that are too large for their topic: the largest part is left out first."""

from __future__ import annotations

import orjson

from .dead_letters import message_bytes, place_headers
from .records import OutMessage

_LEFT_OUT = "oslrau-left-out-bytes"
# The last members of a score and an anomaly. In a string, their quotes would be escaped.
_CONTRIBUTIONS, _RECORD = b',"contributions":', b',"record":'


def shortened(message: OutMessage, max_bytes: int) -> OutMessage:
    """Leave out parts of a score or anomaly until it has at most `max_bytes` bytes."""
    while _size(message) > max_bytes and (message.key or message.value):
        message = without_largest(message)
    return message


def without_largest(message: OutMessage) -> OutMessage:
    """Return a score, anomaly or event without the largest of its key, record and contributions.

    The headers name its record and the size of the original message. A message without any such
    part, and a dead letter, whose headers name its record already, are reduced to the headers.
    """
    headers = tuple(header for header in message.headers if header[0].startswith("oslrau-"))
    names = [name for name, _ in headers]
    if _LEFT_OUT not in names:
        headers += ((_LEFT_OUT, str(_size(message)).encode()),)
    if message.value is None or "oslrau-reason" in names:
        return message._replace(key=None, value=None, headers=headers)

    rest, record = _cut(message.value, _RECORD)
    score, contributions = _cut(rest, _CONTRIBUTIONS)
    if not names:
        place = orjson.loads(score)
        headers = (*place_headers(place["topic"], place["partition"], place["offset"]), *headers)
    largest = max(len(message.key or b""), record, contributions)
    if largest == 0:
        return message._replace(value=None, headers=headers)
    if largest == record:
        return message._replace(value=rest, headers=headers)
    if largest == contributions:
        tail = message.value[len(rest) - 1 :]
        return message._replace(value=score[:-1] + tail, headers=headers)
    return message._replace(key=None, headers=headers)


def _cut(value: bytes, member: bytes) -> tuple[bytes, int]:
    """Return a JSON object without its members from this one on, and the size of these."""
    before, found, after = value.partition(member)
    return (before + b"}", len(after)) if found else (value, 0)


def _size(message: OutMessage) -> int:
    return message_bytes(message.key, message.value, message.headers)
