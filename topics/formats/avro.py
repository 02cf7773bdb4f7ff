"""Records of Avro, read by the schema of their writer."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from fastavro import parse_schema

from faust_oslrau.topics.documents import depth

from .avro_reader import Read, reader
from .avro_rows import row_writer
from .avro_writer import Write
from .documents import as_json
from .errors import ContentError, SchemaError
from .framing import HEADER_BYTES
from .schemas import Schema
from .shapes import EACH, Shape

# Decimals and dates are read as what they mean. Of other logical types the number or text that is
# written is the value: times in milliseconds, microseconds or nanoseconds since 1970. These three
# may be written as texts.
_LOGICAL_TYPES = {"decimal", "date", "timestamp-millis", "timestamp-micros", "timestamp-nanos"}

# Of brackets in a schema, and of types that name each other. Real ones have some ten; a hundred
# stay far from the end of Python's stack.
_MOST_LEVELS = 100


class _AvroCodec:
    def __init__(self, read: Read, write: Write, shape: Shape) -> None:
        self._read = read
        self._write = write
        self.shape = shape

    def decode(self, value: bytes) -> bytes:
        try:
            document, end = self._read(value, HEADER_BYTES)
        except (IndexError, struct.error):
            raise ContentError("it ends within a value") from None
        if end != len(value):
            raise ContentError(f"{len(value) - end} bytes are left over")
        return as_json(document)

    def encode(self, document: Any) -> bytes:
        return self._write(document)


def new_codec(schema: Schema) -> _AvroCodec:
    """Return what reads and writes the records of a schema.

    Raises
    ------
    SchemaError
        It is no Avro, or contains itself.
    """
    named: dict[str, Any] = {}
    for _, text in schema.references:
        _parsed(text, named)
    parsed = _parsed(schema.text, named)
    _check_levels(parsed, named)
    return _AvroCodec(reader(parsed, named), row_writer(parsed, named), _shape(parsed, named, {}))


def _parsed(text: str, named: dict[str, Any]) -> Any:
    """Return a schema, and add the types that it names, in the order of their definitions."""
    # Each level takes nested calls, whose limit depends on where this is called.
    if (found := depth(text.encode())) > _MOST_LEVELS:
        raise SchemaError(f"{found} levels of nesting, at most {_MOST_LEVELS} are taken")
    return parse_schema(_plain(json.loads(text)), named)


def _check_levels(parsed: Any, named: Mapping[str, Any]) -> None:
    """Refuse types within types by their names, of which each may be shallow."""
    known: dict[str, int] = {}
    found = max(_levels(each, named, known) for each in (*named, parsed))
    if found > _MOST_LEVELS:
        raise SchemaError(f"{found} levels of types, at most {_MOST_LEVELS} are taken")


def _levels(schema: Any, named: Mapping[str, Any], known: dict[str, int]) -> int:
    """Return how many types are within each other; no more where one contains itself."""
    if isinstance(schema, list):
        return 1 + max((_levels(each, named, known) for each in schema), default=0)
    if isinstance(schema, str):
        if schema in named and schema not in known:
            known[schema] = 0
            known[schema] = _levels(named[schema], named, known)
        return known.get(schema, 0)
    match schema["type"]:
        case "record" | "error":
            inner = [each["type"] for each in schema["fields"]]
        case "array":
            inner = [schema["items"]]
        case "map":
            inner = [schema["values"]]
        case _:
            inner = []
    return 1 + max((_levels(each, named, known) for each in inner), default=0)


def _shape(schema: Any, named: Mapping[str, Any], known: dict[str, Shape]) -> Shape:
    """Return the names of a record; of a union of several such types, anything is taken."""
    if isinstance(schema, list):
        found = [shape for each in schema if (shape := _shape(each, named, known)) is not None]
        return found[0] if len(found) == 1 else None
    if isinstance(schema, str):
        if schema in named and schema not in known:
            known[schema] = _shape(named[schema], named, known)
        return known.get(schema)
    match schema["type"]:
        case "record" | "error":
            return {each["name"]: _shape(each["type"], named, known) for each in schema["fields"]}
        case "array":
            return {EACH: _shape(schema["items"], named, known)}
        case "map":
            return {EACH: _shape(schema["values"], named, known)}
    return None


def _plain(node: Any) -> Any:
    """Return a schema without the logical types that are read as what is written."""
    if isinstance(node, list):
        return list(map(_plain, node))
    if not isinstance(node, dict):
        return node
    plain = {name: _plain(content) for name, content in node.items()}
    if plain.get("logicalType") not in _LOGICAL_TYPES:
        plain.pop("logicalType", None)
    return plain
