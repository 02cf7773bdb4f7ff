"""The bytes before a record's content that name its schema, as Confluent's serializers write them.

A zero byte, then the id of the schema in the registry as four bytes, the highest first.
"""

from __future__ import annotations

import struct

from faust_oslrau.topics.rejections import Reason, Rejection

HEADER_BYTES = 5
LARGEST_ID = 2**31 - 1

_MAGIC = 0
_HEADER = struct.Struct(">bI")
_JSON = "; it begins like JSON: the setting format may have to be json"
_EIGHT_BYTES = 9  # a zero byte and an id of eight bytes


def framed(schema_id: int, content: bytes) -> bytes:
    """Return a record with this content."""
    return _HEADER.pack(_MAGIC, schema_id) + content


def schema_id(value: bytes) -> int | Rejection:
    """Return the id of a record's schema, or why there is none."""
    if len(value) < HEADER_BYTES or value[0] != _MAGIC:
        hint = _JSON if value.lstrip().startswith(b"{") else ""
        return _not_framed(f"got {value[:HEADER_BYTES].hex(' ') or 'no byte'}{hint}")
    found = int(_HEADER.unpack_from(value)[1])
    if found == 0 and len(value) >= _EIGHT_BYTES:
        return _not_framed(
            "got 00 and an id of eight bytes, which is Apicurio's own format: let its serializers "
            "write Confluent's ids of four bytes"
        )
    if not 0 < found <= LARGEST_ID:
        return _not_framed(f"got the id {found}, ids are 1 to {LARGEST_ID}")
    return found


def _not_framed(found: str) -> Rejection:
    return Rejection(Reason.NOT_FRAMED, f"expected 00 and a schema's id of four bytes, {found}")
