"""Reads which entity each record belongs to: a device, a customer, a service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .contents import content_reader
from .fields import is_beyond, is_number
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
        self._content = None if name == KEY else content_reader(name)

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
