"""Reads the content of one field of valid records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .documents import parse
from .fields import find


def content_reader(field: str) -> Callable[[bytes], Any]:
    """Return a function that reads one field of a record; None where there is none."""

    def read(value: bytes) -> Any:
        try:
            document = parse(value)
            return find(document, field) if isinstance(document, dict) else None
        except ValueError:  # a text that is not one, in a field that the decoder skips
            return None

    return read if "." in field else _faster(field, read)


def _faster(field: str, otherwise: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Return a function that reads a top-level field without a dict of all of them."""
    try:
        record = msgspec.defstruct("Record", [("name", Any, None)], rename={"name": field})
        decode: Callable[[bytes], Any] = msgspec.json.Decoder(record).decode
    except ValueError:  # a name with a character that JSON escapes
        return otherwise

    def read(value: bytes) -> Any:
        try:
            return decode(value).name
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return otherwise(value)

    return read
