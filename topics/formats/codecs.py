"""Formats of records other than JSON: what reads and writes them by a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

from .errors import SchemaError
from .schemas import Schema
from .shapes import Shape

KINDS: Mapping[str, str] = {"avro": "AVRO", "protobuf": "PROTOBUF", "json_schema": "JSON"}
"""What a registry calls the language of each format's schemas."""

_MODULES: Mapping[str, tuple[str, ...]] = {
    "avro": ("fastavro",),
    "protobuf": ("google.protobuf", "grpc_tools"),
    "json_schema": (),
}


class Codec(Protocol):
    """Reads and writes the records of one schema.

    Attributes
    ----------
    shape
        What of a document the schema has.
    """

    shape: Shape

    def decode(self, value: bytes) -> bytes:
        """Return a record, which begins with the id of its schema, as a JSON object.

        Raises
        ------
        ContentError
            The record does not follow the schema.
        """

    def encode(self, document: Any) -> bytes:
        """Return a record's content, which follows the id of its schema.

        Raises
        ------
        ContentError
            The document does not follow the schema.
        """


def missing_module(format_name: str) -> str | None:
    """Return the first module that a format needs and that is not installed; None if none is."""
    for name in _MODULES[format_name]:
        try:
            import_module(name)
        except ImportError:
            return name
    return None


@lru_cache(256)  # the partitions of a topic have the same few schemas
def codec(format_name: str, schema: Schema) -> Codec:
    """Return what reads and writes the records of a schema.

    Raises
    ------
    SchemaError
        The schema is of another format, cannot be read, or has what is not taken.
    """
    if schema.kind != KINDS[format_name]:
        raise SchemaError(f"expected a schema of {KINDS[format_name]}, got {schema.kind}")
    # Imported when it is needed: its library is optional.
    new: Callable[[Schema], Codec] = import_module(f".{format_name}", __package__).new_codec
    return new(schema)
