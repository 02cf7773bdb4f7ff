"""What is left of a message that its topic does not take: the largest part goes first."""

from __future__ import annotations

import orjson

from .dead_letters import message_bytes, place_headers
from .records import OutMessage

_LEFT_OUT = "oslrau-left-out-bytes"
# The last members of a score and an anomaly. In a string, their quotes would be escaped.
_CONTRIBUTIONS, _RECORD = b',"contributions":', b',"record":'


def shortened(message: OutMessage, max_bytes: int) -> OutMessage:
    """Return the score or anomaly with at most `max_bytes` bytes, without parts where need be."""
    while _size(message) > max_bytes and (message.key or message.value):
        message = without_largest(message)
    return message


def without_largest(message: OutMessage) -> OutMessage:
    """Return a score, anomaly or event without the largest of its key, record and contributions.

    Headers say where its record is, and what size the message had. They are all that is left where
    there is no such part any more, and of a dead letter, whose headers say it already.
    """
    kept = tuple(header for header in message.headers if header[0].startswith("oslrau-"))
    names = [name for name, _ in kept]
    if _LEFT_OUT not in names:
        kept += ((_LEFT_OUT, str(_size(message)).encode()),)
    if message.value is None or "oslrau-reason" in names:
        return message._replace(key=None, value=None, headers=kept)

    rest, record = _cut(message.value, _RECORD)
    score, contributions = _cut(rest, _CONTRIBUTIONS)
    if not names:
        place = orjson.loads(score)
        kept = (*place_headers(place["topic"], place["partition"], place["offset"]), *kept)
    largest = max(len(message.key or b""), record, contributions)
    if largest == 0:
        return message._replace(value=None, headers=kept)
    if largest == record:
        return message._replace(value=rest, headers=kept)
    if largest == contributions:
        tail = message.value[len(rest) - 1 :]
        return message._replace(value=score[:-1] + tail, headers=kept)
    return message._replace(key=None, headers=kept)


def _cut(value: bytes, member: bytes) -> tuple[bytes, int]:
    """Return the JSON object before a member, and how many bytes come from there on."""
    before, found, after = value.partition(member)
    return (before + b"}", len(after)) if found else (value, 0)


def _size(message: OutMessage) -> int:
    return message_bytes(message.key, message.value, message.headers)
