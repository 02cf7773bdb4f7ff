"""Scores, anomalies and events as Avro, and back; the same content is JSON everywhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any

import orjson

from .avro_writer import whole_number, writer
from .codecs import KINDS, codec
from .errors import ContentError, SchemaError, checked, told
from .framing import framed
from .schemas import Schema

Translate = Callable[[bytes], bytes]
"""Returns a message in the other format."""

_RECORD = b',"record":'


@cache
def message_schema(topic: str) -> Schema:
    """Return the schema of the topic of `scores`, or of that of `anomalies`."""
    text = files(__package__).joinpath(f"{topic}.avsc").read_text(encoding="utf-8")
    return Schema(KINDS["avro"], text)


def message_writer(schema: Schema, schema_id: int) -> Translate:
    """Return what makes Avro of a message that is JSON, by a schema of `message_schema`.

    The bytes are a function of the JSON and the id.
    """
    kinds = _records(schema, {}, expand=True)
    first, several = next(iter(kinds)), len(kinds) > 1
    ways = {
        kind: (framed(schema_id, whole_number(at) if several else b""), writer(record))
        for at, (kind, record) in enumerate(kinds.items())
    }

    def write(message: bytes) -> bytes:
        # The last member, in which numbers may be beyond a double. In a string, its quotes would be
        # escaped.
        score, found, record = message.partition(_RECORD)
        document = orjson.loads(score + b"}" if found else score)
        if found:
            # what no field is read from may be no UTF-8
            document["record"] = record[:-1].decode(errors="replace")
        start, write_content = ways[document.get("event", first)]
        return start + write_content(document)

    return write


def message_reader(schema: Schema) -> Translate:
    """Return what makes JSON of a message of a schema that `message_schema` or a later one was.

    It raises ContentError for a message of another schema.

    Raises
    ------
    SchemaError
        The schema is none of messages.
    """
    decode, named = codec("avro", schema).decode, dict[str, Any]()
    try:
        kinds = _records(schema, named)
        first = next(iter(kinds))
    except Exception as error:
        raise SchemaError(f"expected records of messages, {told(error)}") from error

    def read(value: bytes) -> bytes:
        document = orjson.loads(decode(value))
        kind = str(document.get("event", first))
        if kind not in kinds:
            raise ContentError(f"expected an event of {', '.join(kinds)}, got {kind}")
        message = _present(document, kinds[kind], named)
        if isinstance(message.get("record"), str):
            message["record"] = orjson.Fragment(message["record"])
        return orjson.dumps(message)

    return partial(checked, read)


def _records(schema: Schema, named: dict[str, Any], *, expand: bool = False) -> Mapping[str, Any]:
    """Return the schemas of the kinds of messages, and add the types that they name.

    Expanded ones, in which no type is named, may have no end: only for schemas of our own.
    """
    from fastavro import parse_schema  # its library is optional

    parsed: Any = parse_schema(json.loads(schema.text), named, expand=expand)
    records = parsed if isinstance(parsed, list) else [parsed]
    return {record["name"].rpartition(".")[2].lower(): record for record in records}


def _present(
    document: Mapping[str, Any], record: Mapping[str, Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an object without the members that are absent, which are null in Avro."""
    found: dict[str, Any] = {}
    for field in record["fields"]:
        content = document[field["name"]]
        if content is None and "default" in field:
            continue
        items = _items(field["type"], named)
        if items is not None and content is not None:
            content = [_present(item, items, named) for item in content]
        found[field["name"]] = content
    return found


def _items(kind: Any, named: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the record of a list's items; None for another type."""
    other = kind[-1] if isinstance(kind, list) else kind
    items = other.get("items") if isinstance(other, dict) else None
    found = named.get(items) if isinstance(items, str) else items
    return found if isinstance(found, dict) and "fields" in found else None
