"""Records of JSON Schema: JSON behind the id of a schema.

They are not checked against the schema: the rules for JSON decide which can be scored.
"""

from __future__ import annotations

from typing import Any

import orjson

from .framing import HEADER_BYTES
from .schemas import Schema
from .shapes import Shape


class _JsonCodec:
    shape: Shape = None

    def decode(self, value: bytes) -> bytes:
        return value[HEADER_BYTES:]

    def encode(self, document: Any) -> bytes:
        return orjson.dumps(document)


def new_codec(schema: Schema) -> _JsonCodec:
    """Return what reads and writes the records of a schema."""
    return _JsonCodec()
