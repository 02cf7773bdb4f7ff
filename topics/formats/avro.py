"""Records of Avro, read by the schema of their writer."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from fastavro import parse_schema
from fastavro.schema import SchemaParseException, UnknownType

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
        except ContentError:
            raise
        except (ValueError, OverflowError) as error:  # a text that is no UTF-8, a distant date
            raise ContentError(str(error)) from error
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
    try:
        for _, text in schema.references:
            parse_schema(_plain(json.loads(text)), named)
        parsed = parse_schema(_plain(json.loads(schema.text)), named)
        return _AvroCodec(
            reader(parsed, named), row_writer(parsed, named), _shape(parsed, named, {})
        )
    except SchemaError:
        raise
    except (SchemaParseException, UnknownType, ValueError) as error:
        raise SchemaError(f"expected an Avro schema, {error!r}") from error
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SchemaError(f"expected an Avro schema, {type(error).__name__}") from error


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
