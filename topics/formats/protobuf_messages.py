"""Bounds the messages within a record of Protobuf before they are made.

protobuf reserves room for all fields of a message, also for one that takes two bytes: a record of
1 MB can take 30 GB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor

from .budget import left, require
from .documents import object_cost

_MOST_LEVELS = 100  # which protobuf reads
_SMALLEST = 2  # bytes of a message within another
_VARINT, _EIGHT, _BYTES, _GROUP, _END, _FOUR = range(6)

Parse = Callable[[bytes], Any]


class _Kind(NamedTuple):
    """A kind of message.

    Attributes
    ----------
    cost
        What one takes as JSON, or less.
    inner
        The kinds of messages in its fields, by their numbers.
    """

    cost: int
    inner: dict[int, _Kind]


def bounded(parse: Parse, descriptor: Descriptor) -> Parse:
    """Return what parses a message unless those within it take more than what is left.

    It raises LargeContentError then.
    """
    known: dict[str, _Kind] = {}
    kind = _kinds(descriptor, known)
    worst = max((each.cost for each in known.values()), default=0)
    if not kind.inner:
        return parse

    def read(content: bytes) -> Any:
        if len(content) // _SMALLEST * worst > left():
            require(_cost(content, kind.inner))
        return parse(content)

    return read


def _kinds(descriptor: Descriptor, known: dict[str, _Kind]) -> _Kind:
    """Return the kind of a message, and add those within it; a message may contain its own."""
    waiting = [descriptor]
    while waiting:
        each = waiting.pop()
        kind = known.setdefault(each.full_name, _Kind(_cost_of(each), {}))
        for field in each.fields:
            inner = field.message_type
            if inner is not None and field.number not in kind.inner:
                if inner.full_name not in known:
                    known[inner.full_name] = _Kind(_cost_of(inner), {})
                    waiting.append(inner)
                kind.inner[field.number] = known[inner.full_name]
    return known[descriptor.full_name]


def _cost_of(descriptor: Descriptor) -> int:
    # Entries of maps are no objects, and what is Google's may be a number.
    if descriptor.GetOptions().map_entry or descriptor.file.package == "google.protobuf":
        return 1
    return object_cost([field.name for field in descriptor.fields])


def _cost(content: bytes, inner: Mapping[int, _Kind]) -> int:
    """Return what the messages within a message cost; of what is cut, those before its end."""
    cost, at = 0, 0
    # The ends of the messages around, with their kinds; a group has its end where it is met.
    around: list[tuple[int, Mapping[int, _Kind]]] = []
    end = len(content)
    try:
        while at < end or around:
            if at >= end:
                end, inner = around.pop()
                continue
            tag, at = _varint(content, at)
            number, wire = tag >> 3, tag & 7
            if wire == _VARINT:
                _, at = _varint(content, at)
            elif wire in (_EIGHT, _FOUR):
                at += 8 if wire == _EIGHT else 4
            elif wire == _END:
                if not around:
                    return cost
                end, inner = around.pop()
            elif wire in (_BYTES, _GROUP):
                length, at = _varint(content, at) if wire == _BYTES else (end - at, at)
                kind = inner.get(number)
                if kind is None and wire == _BYTES:
                    at += length
                elif at + length > end or len(around) >= _MOST_LEVELS:
                    return cost
                else:
                    around.append((end, inner))
                    end, inner = at + length, {} if kind is None else kind.inner
                    cost += 0 if kind is None else kind.cost
            else:
                return cost
    except IndexError:
        pass
    return cost


def _varint(content: bytes, at: int) -> tuple[int, int]:
    found, shift = 0, 0
    while (byte := content[at]) > 127:
        found |= (byte & 127) << shift
        shift += 7
        at += 1
    return found | byte << shift, at + 1
