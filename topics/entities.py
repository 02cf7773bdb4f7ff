"""Reads which entity each record belongs to: a device, a customer, a service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from .documents import parse
from .fields import find, is_beyond, is_number
from .records import KafkaRecord

KEY = "key"
"""Names the message's key; every other name is one of a field."""

LARGEST_INTEGER = 2**63
"""Integers from here on are read as doubles, which is all that some parsers give."""


class EntityReader:
    """Reads the entities of valid records.

    A text names an entity, as its UTF-8, and a key does as it is, the empty one as well. A number
    names the entity of its shortest text: 7, 7.0 and "7" are one entity. A record has none if it
    has no key, or anything else in the field.

    Parameters
    ----------
    name
        `KEY`, or the name of a field.
    """

    def __init__(self, name: str) -> None:
        self._content = None if name == KEY else _content_reader(name)

    def read(self, records: Sequence[KafkaRecord]) -> list[bytes | None]:
        """Return the entity of each record; None where it has none."""
        content = self._content
        if content is None:
            return [record.key for record in records]
        return [as_entity(content(record.value or b"")) for record in records]


def as_entity(content: Any) -> bytes | None:
    """Return the entity that the content of a field names."""
    if isinstance(content, str):
        try:
            return content.encode()
        except UnicodeEncodeError:  # half a surrogate pair
            return None
    if not is_number(content) or isinstance(content, bool) or is_beyond(content):
        return None
    if abs(content) < LARGEST_INTEGER and content == int(content):
        return b"%d" % int(content)
    return repr(float(content)).encode()


def _content_reader(field: str) -> Callable[[bytes], Any]:
    """Return a function that reads one field of a valid record."""

    def read(value: bytes) -> Any:
        try:
            return find(parse(value), field)
        except ValueError:  # a text that is not one, in a field that the decoder skips
            return None

    return read if "." in field else _faster(field, read)


def _faster(field: str, otherwise: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Return a function that reads a top-level field without a dict of all of them."""
    try:
        record = msgspec.defstruct("Entity", [("name", Any, None)], rename={"name": field})
        decode: Callable[[bytes], Any] = msgspec.json.Decoder(record).decode
    except ValueError:  # a name with a character that JSON escapes
        return otherwise

    def read(value: bytes) -> Any:
        try:
            return decode(value).name
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return otherwise(value)

    return read
