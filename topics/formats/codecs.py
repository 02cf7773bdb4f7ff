"""Formats of records other than JSON: what reads and writes them by a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

from .budget import allow
from .errors import RETRIED, ContentError, SchemaError, checked, told
from .schemas import Schema
from .shapes import Shape

KINDS: Mapping[str, str] = {"avro": "AVRO", "protobuf": "PROTOBUF", "json_schema": "JSON"}
"""What a registry calls the language of each format's schemas."""

_MODULES: Mapping[str, tuple[str, ...]] = {
    "avro": ("fastavro",),
    "protobuf": ("google.protobuf", "grpc_tools"),
    "json_schema": (),
}

LARGEST_JSON = 10_000_000
"""More bytes than a message of this program has as JSON, whose texts do not count."""


class Codec(Protocol):
    """Reads and writes the records of one schema."""

    @property
    def shape(self) -> Shape:
        """What of a document the schema has."""

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


class _Guarded:
    """A codec whose errors are those of the record: everything that reads or writes calls it here.

    What a library raises for a record that nobody thought of would otherwise stop each worker that
    gets to it, again and again.
    """

    def __init__(self, inner: Codec, max_bytes: int) -> None:
        self._inner = inner
        self._decode = inner.decode
        self._max_bytes = max_bytes

    @property
    def shape(self) -> Shape:
        return self._inner.shape

    def decode(self, value: bytes) -> bytes:
        allow(self._max_bytes)
        try:  # as `checked`, a tenth of a microsecond faster
            return self._decode(value)
        except (ContentError, *RETRIED):
            raise
        except Exception as error:
            raise ContentError(told(error)) from error

    def encode(self, document: Any) -> bytes:
        return checked(self._inner.encode, document)


@lru_cache(256)  # the partitions of a topic have the same few schemas
def codec(format_name: str, schema: Schema, max_bytes: int = LARGEST_JSON) -> Codec:
    """Return what reads and writes the records of a schema.

    Parameters
    ----------
    format_name
        One of `KINDS`.
    schema
        The schema, whose text may be anything.
    max_bytes
        About the largest size of a record as JSON.

    Raises
    ------
    SchemaError
        The schema is of another format, cannot be read, or has what is not taken.
    """
    if schema.kind != KINDS[format_name]:
        raise SchemaError(f"expected a schema of {KINDS[format_name]}, got {schema.kind[:100]}")
    # Imported when it is needed: its library is optional.
    new: Callable[[Schema], Codec] = import_module(f".{format_name}", __package__).new_codec
    try:
        return _Guarded(new(schema), max_bytes)
    except (SchemaError, *RETRIED):
        raise
    except Exception as error:
        raise SchemaError(f"expected a schema of {schema.kind}, {told(error)}") from error
