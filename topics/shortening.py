"""Shortens messages that are too large for their topic: the largest part is left out first."""

from __future__ import annotations

import orjson

from .dead_letters import message_bytes, place_headers
from .records import OutMessage

_LEFT_OUT = "oslrau-left-out-bytes"
# The last members of a score and an anomaly. In a string, their quotes would be escaped.
_LAST = b',"record":', b',"contributions":', b',"forecast":'


def shortened(message: OutMessage, max_bytes: int) -> OutMessage:
    """Leave out parts of a score or anomaly until it has at most `max_bytes` bytes."""
    while _size(message) > max_bytes and (message.key or message.value):
        message = without_largest(message)
    return message


def without_largest(message: OutMessage) -> OutMessage:
    """Return a score, anomaly or event without the largest of its key and its last members.

    The headers name its record and the size of the original message. A message without any such
    part, and a dead letter, whose headers name its record already, are reduced to the headers.
    """
    names = [name for name, _ in message.headers]
    is_letter = "oslrau-reason" in names  # of which other headers are the record's own
    kept = ("oslrau-",) if is_letter else ("oslrau-", "ce_", "content-type")
    headers = tuple(header for header in message.headers if header[0].startswith(kept))
    if _LEFT_OUT not in names:
        headers += ((_LEFT_OUT, str(_size(message)).encode()),)
    if message.value is None or is_letter:
        return message._replace(key=None, value=None, headers=headers)

    score, members = _last_members(message.value)
    if "oslrau-topic" not in names:
        place = orjson.loads(score + b"}")
        headers = (*place_headers(place["topic"], place["partition"], place["offset"]), *headers)
    if len(message.key or b"") > max(map(len, members.values()), default=0):
        return message._replace(key=None, headers=headers)
    if not members:
        return message._replace(value=None, headers=headers)
    del members[max(members, key=lambda name: len(members[name]))]
    value = b"".join([score, *(name + members[name] for name in reversed(members)), b"}"])
    return message._replace(value=value, headers=headers)


def _last_members(value: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Return a JSON object without its end and its last members, and these, the last one first."""
    rest, members = value[:-1], dict[bytes, bytes]()
    for name in _LAST:  # the record first: it may have members of these names
        rest, found, after = rest.partition(name)
        if found:
            members[name] = after
    return rest, members


def _size(message: OutMessage) -> int:
    return message_bytes(message.key, message.value, message.headers)
