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
    booleans
        Whether true and false are entities, "true" and "false".
    """

    def __init__(self, name: str, *, booleans: bool = False) -> None:
        self._content = None if name == KEY else content_reader(name)
        self._booleans = {True: b"true", False: b"false"} if booleans else {}

    def read(self, records: Sequence[KafkaRecord]) -> list[bytes | None]:
        """Return the entity of each record; None where it has none."""
        content = self._content
        if content is None:
            return [record.key for record in records]
        return [self._entity(content(record.value or b"")) for record in records]

    def _entity(self, content: Any) -> bytes | None:
        if isinstance(content, bool):
            return self._booleans.get(content)
        return _as_entity(content)


def _as_entity(content: Any) -> bytes | None:
    """Return the entity that the content of a field names."""
    if isinstance(content, str):
        try:
            return content.encode()
        except UnicodeEncodeError:  # half a surrogate pair
            return None
    if not is_number(content) or is_beyond(content):
        return None
    if abs(content) < LARGEST_INTEGER and content == int(content):
        return b"%d" % int(content)
    return repr(float(content)).encode()
