"""Records of Avro, read by the schema of their writer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import SchemaParseException, UnknownType

from .documents import as_json
from .errors import ContentError, SchemaError
from .framing import HEADER_BYTES
from .schemas import Schema

# Read as what they mean. Of other logical types the number or text that is written is the value:
# times in milliseconds, microseconds or nanoseconds since 1970.
_LOGICAL_TYPES = {"decimal", "date"}
_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


class _AvroCodec:
    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def decode(self, value: bytes) -> bytes:
        source = BytesIO(value)
        source.seek(HEADER_BYTES)
        try:
            document = schemaless_reader(source, self._schema, None)
        except EOFError:
            raise ContentError("it ends within a value") from None
        except Exception as error:  # whatever fastavro raises for bytes that are not of the schema
            # Its message may hold an address of memory, which differs from run to run.
            raise ContentError(f"it cannot be read, {type(error).__name__}") from error
        left_over = len(value) - source.tell()
        if left_over:
            raise ContentError(f"{left_over} bytes are left over")
        return as_json(document)

    def encode(self, document: Any) -> bytes:
        written = BytesIO()
        try:
            schemaless_writer(written, self._schema, document)
        except Exception as error:  # whatever fastavro raises for a document of another schema
            raise ContentError(f"{type(error).__name__}: {error}") from error
        return written.getvalue()


def new_codec(schema: Schema) -> _AvroCodec:
    """Return what reads and writes the records of a schema.

    Raises
    ------
    SchemaError
        It is no Avro, contains itself, or lets a record of few bytes hold any number of values.
    """
    named: dict[str, Any] = {}
    try:
        for _, text in schema.references:
            parse_schema(_plain(json.loads(text)), named)
        parsed = parse_schema(_plain(json.loads(schema.text)), dict(named))
        _check(parse_schema(_plain(json.loads(schema.text)), dict(named), expand=True))
    except (SchemaParseException, UnknownType, ValueError, RecursionError) as error:
        raise SchemaError(f"expected an Avro schema, {error!r}") from error
    except (TypeError, KeyError, AttributeError) as error:
        raise SchemaError(f"expected an Avro schema, {type(error).__name__}") from error
    return _AvroCodec(parsed)


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


def _check(schema: Any) -> int:
    """Return the fewest bytes of a value.

    fastavro reads nested values by nested calls in C, which end the process where a schema that
    contains itself lets them be deep. It takes the number of a list's values from the record.
    """
    if isinstance(schema, list):
        return 1 + min(map(_check, schema), default=0)
    if isinstance(schema, str):
        if schema not in _PRIMITIVES:
            raise SchemaError(f"{schema} contains itself, which is not taken")
        return 0 if schema == "null" else 1
    return _check_complex(schema)


def _check_complex(schema: Mapping[str, Any]) -> int:
    kind = schema["type"]
    if kind in ("record", "error"):
        return sum(_check(field["type"]) for field in schema["fields"])
    if kind == "fixed":
        return int(schema["size"])
    if kind == "array" and _check(schema["items"]) == 0:
        raise SchemaError("an array has items without any bytes, which is not taken")
    if kind == "map":
        _check(schema["values"])
    return 1 if kind in ("array", "map", "enum") else _check(kind)
