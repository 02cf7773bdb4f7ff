"""Times of rows as Protobuf's JSON has them: texts, while records of it are read as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

TIMESTAMP = "google.protobuf.Timestamp"

_EPOCH = datetime(1970, 1, 1)
_IN_SECOND = 10**9
_IN_MILLISECOND = 10**6


def with_times(content: Any, descriptor: Descriptor) -> Any:
    """Return content in which numbers that are times, in milliseconds since 1970, are texts."""
    if isinstance(content, list):
        return [with_times(each, descriptor) for each in content]
    if descriptor.full_name == TIMESTAMP:
        return _text(content)
    if not isinstance(content, dict) or descriptor.full_name.startswith("google.protobuf."):
        return content
    fields = {name: field for field in descriptor.fields for name in (field.name, field.json_name)}
    return {name: _of_field(each, name, fields) for name, each in content.items()}


def _of_field(content: Any, name: str, fields: Mapping[str, FieldDescriptor]) -> Any:
    kind = fields[name].message_type if name in fields else None
    if kind is None:
        return content
    if not kind.GetOptions().map_entry:
        return with_times(content, kind)
    value = kind.fields_by_name["value"]
    if not isinstance(content, dict):
        return content
    return {each: _of_field(inner, "value", {"value": value}) for each, inner in content.items()}


def _text(content: Any) -> Any:
    if isinstance(content, int | float) and not isinstance(content, bool):
        whole = math.floor(content)
        part = round((content - whole) * _IN_MILLISECOND)
        seconds, nanoseconds = divmod(whole * _IN_MILLISECOND + part, _IN_SECOND)
        with suppress(OverflowError):  # it is refused as what it is
            moment = _EPOCH + timedelta(seconds=seconds)
            return f"{moment.isoformat()}.{nanoseconds:09}Z"
    return content
