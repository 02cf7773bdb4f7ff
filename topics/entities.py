"""Reads which entity a record belongs to: its key, or a field that names a device or a customer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import orjson

from .documents import parse
from .fields import find, is_beyond
from .records import KafkaRecord

EntityReader = Callable[[Sequence[KafkaRecord]], list[bytes | None]]
"""Returns the entity of each valid record; None for a record without one."""


def entity_reader(entity: str) -> EntityReader:
    """Return the reader of a setting: ``key`` is the message's key, all else a field's name.

    A key or text of any length and content names an entity, the empty one as well. A number names
    the entity of its shortest text: 7, 7.0 and "7" are one entity. Without key, and with anything
    else in the field, a record has no entity.
    """
    if entity == "key":
        return _keys
    if "." in entity:
        return lambda records: [_slow(record.value, entity) for record in records]
    content = _fast_reader(entity)
    return lambda records: [
        content.encode() if type(content := read(record.value)) is str else as_entity(content)
        for record in records
    ]


def _keys(records: Sequence[KafkaRecord]) -> list[bytes | None]:
    return [record.key for record in records]
