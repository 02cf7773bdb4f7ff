"""Rows of files as Kafka messages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.topics.fields import listed

# Rows read at once: enough for fast reading, few enough for little memory.
BLOCK = 1024
# JSON has no infinity. This number exceeds every double, and is rejected as `not_finite`.
_INFINITY = {math.inf: orjson.Fragment(b"1e999"), -math.inf: orjson.Fragment(b"-1e999")}


class InputFileError(OslrauError):
    """A file cannot be read as feature records."""


class InputMessage(NamedTuple):
    """One row of a file as a message."""

    key: bytes | None
    value: bytes


def exact(content: Any) -> Any:
    """Return content for orjson that preserves infinity, which orjson would write as null."""
    if isinstance(content, float):
        return _INFINITY.get(content, content)
    if isinstance(content, dict):
        return {str(name): exact(inner) for name, inner in content.items()}
    if isinstance(content, list | tuple):
        return [exact(inner) for inner in content]
    return content


def key_bytes(content: Any) -> bytes | None:
    """Return the content of a field as the key of a message."""
    if content is None or isinstance(content, bytes):
        return content
    return content.encode() if isinstance(content, str) else orjson.dumps(content, default=str)


def check_key(path: Path, key: str | None, names: list[str]) -> None:
    """Refuse a key that is none of a file's columns."""
    if key is not None and key not in names:
        raise InputFileError(f"{path}: no column {key!r}, expected one of {listed(names)}")
