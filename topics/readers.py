"""Fast readers, which extract the chosen fields from the bytes of a record."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import orjson

from .fields import tuple_getter


class Reader(NamedTuple):
    """Reads most records: the contents of the fields are `get(parse(value))`.

    Raises ValueError, KeyError, TypeError or RecursionError for a value that it cannot read. The
    value must be valid UTF-8.
    """

    parse: Callable[[bytes], Any]
    get: Callable[[Any], tuple[Any, ...]]


@lru_cache(64)
def record_reader(fields: tuple[str, ...], texts: frozenset[str] = frozenset()) -> Reader:
    """Return the fastest reader of these fields; fields with the same parent must be neighbours.

    The fields in ``texts`` may hold text.

    msgspec decodes top-level fields into an object with one attribute each, without a dict.
    """
    if not any("." in field for field in fields):
        try:
            return _typed_reader(fields, texts)
        except ValueError:  # a name with a character that JSON escapes, or the same name twice
            pass
    return Reader(orjson.loads, tuple_getter(fields))


def _typed_reader(fields: tuple[str, ...], texts: frozenset[str]) -> Reader:
    names = [f"field{i}" for i in range(len(fields))]
    members: list[tuple[str, Any, None]] = [
        (name, float | bool | None | (str if field in texts else None), None)
        for name, field in zip(names, fields, strict=True)
    ]
    names_in_json = dict(zip(names, fields, strict=True))
    record = msgspec.defstruct("Fields", members, rename=names_in_json, gc=False)
    return Reader(msgspec.json.Decoder(record).decode, msgspec.structs.astuple)
