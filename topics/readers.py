"""Fast readers, which extract the chosen fields from the bytes of a record."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import orjson

from .fields import tuple_getter


class Reader(NamedTuple):
    """A way to read most records: the contents are those of `get(parse(value))`.

    It raises ValueError, KeyError, TypeError or RecursionError for a value that it does not serve.
    What is given to it must be valid UTF-8.
    """

    parse: Callable[[bytes], Any]
    get: Callable[[Any], tuple[Any, ...]]


@lru_cache(64)
def record_reader(fields: tuple[str, ...]) -> Reader:
    """Return the fastest reader of these fields; those of one parent must be neighbours.

    Top-level fields go straight into a record of their own type, without a dict around them.
    """
    if not any("." in field for field in fields):
        try:
            return _typed_reader(fields)
        except ValueError:  # a name that is written with a backslash, or twice the same
            pass
    return Reader(orjson.loads, tuple_getter(fields))


def _typed_reader(fields: tuple[str, ...]) -> Reader:
    names = [f"field{i}" for i in range(len(fields))]
    members = [(name, float | bool | None, None) for name in names]
    names_in_json = dict(zip(names, fields, strict=True))
    record = msgspec.defstruct("Fields", members, rename=names_in_json, gc=False)
    return Reader(msgspec.json.Decoder(record).decode, msgspec.structs.astuple)
