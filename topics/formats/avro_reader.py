"""Reads the binary encoding of Avro into plain values.

fastavro takes two to three times as long, and reads nested values by nested calls in C: a record of
a schema that contains itself can end the process.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import groupby
from typing import Any

from .budget import spend
from .documents import object_cost, object_maker
from .errors import ContentError, SchemaError
from .zigzag import zigzag

Read = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value at a position of a record: returns it, and the position after it.

Raises IndexError or struct.error where the record ends, ContentError or another error for what is
not of the schema.
"""

_Of = Callable[[Any], Read]
"""Returns what reads the values of a schema."""

_Part = Callable[[list[Any], bytes, int], int]
"""Reads the next fields of a record into a list; returns the position after them."""

_EPOCH = date(1970, 1, 1).toordinal()
_NAMED = ("record", "error", "enum", "fixed")
# Types of a fixed length, as the struct module calls them.
_FIXED = {"boolean": "?", "float": "f", "double": "d"}


def reader(schema: Any, named: Mapping[str, Any]) -> Read:
    """Return what reads the values of a parsed schema; ``named`` are the types that it may name.

    Raises
    ------
    SchemaError
        The schema contains itself.
    """
    made: dict[str, Read | None] = {}

    def of_name(name: str) -> Read:
        if name not in made:
            made[name] = None  # until it is made: a type that needs it meanwhile is within it
            made[name] = _anonymous(named[name], of)
        found = made[name]
        if found is None:
            raise SchemaError(f"{name} contains itself, which is not taken")
        return found

    def of(schema: Any) -> Read:
        if isinstance(schema, list):
            return _union(list(map(of, schema)))
        if isinstance(schema, str):
            return _PRIMITIVES.get(schema) or of_name(schema)
        is_named = schema["type"] in _NAMED
        return of_name(schema["name"]) if is_named else _anonymous(schema, of)

    return of(schema)


def _anonymous(schema: Any, of: _Of) -> Read:
    """Return what reads a type by its definition; ``of`` is for the types within it."""
    kind = schema["type"]
    match schema.get("logicalType"), kind:  # any other pair is no logical type
        case "decimal", "bytes":
            return _decimal(_bytes, schema)
        case "decimal", "fixed":
            return _decimal(_fixed(schema["size"]), schema)
        case "date", "int":
            return _date
    return _COMPLEX[kind](schema, of) if kind in _COMPLEX else of(kind)


def _null(value: bytes, at: int) -> tuple[None, int]:
    return None, at


def _bytes(value: bytes, at: int) -> tuple[bytes, int]:
    length, at = zigzag(value, at)
    return _sliced(value, at, length)


def _sliced(value: bytes, at: int, length: int) -> tuple[bytes, int]:
    end = at + length
    if length < 0:
        raise ContentError(f"a length is {length}")
    if end > len(value):
        raise IndexError
    return value[at:end], end


def _text(value: bytes, at: int) -> tuple[str, int]:
    found, at = _bytes(value, at)
    return found.decode(), at


def _ignored(read: Read) -> Read:
    """Return what reads bytes, which are no value."""

    def ignore(value: bytes, at: int) -> tuple[None, int]:
        return None, read(value, at)[1]

    return ignore


def _fixed(length: int) -> Read:
    return lambda value, at: _sliced(value, at, length)


def _unpacked(code: str) -> Read:
    form = struct.Struct(f"<{code}")
    unpack, size = form.unpack_from, form.size
    return lambda value, at: (unpack(value, at)[0], at + size)


def _date(value: bytes, at: int) -> tuple[date, int]:
    days, at = zigzag(value, at)
    return date.fromordinal(_EPOCH + days), at


def _decimal(read: Read, schema: Mapping[str, Any]) -> Read:
    scale = int(schema.get("scale", 0))

    def decimal(value: bytes, at: int) -> tuple[Decimal, int]:
        found, at = read(value, at)
        unscaled = int.from_bytes(found, "big", signed=True)
        return Decimal(f"{unscaled}e{-scale}"), at

    return decimal


def _union(branches: Sequence[Read]) -> Read:
    def union(value: bytes, at: int) -> tuple[Any, int]:
        index, at = zigzag(value, at)
        read: Read = _chosen(branches, index)
        return read(value, at)

    return union


def _enum(schema: Mapping[str, Any], of: _Of) -> Read:
    symbols = schema["symbols"]

    def enum(value: bytes, at: int) -> tuple[str, int]:
        index, at = zigzag(value, at)
        symbol: str = _chosen(symbols, index)
        spend(len(symbol))
        return symbol, at

    return enum


def _chosen(choices: Sequence[Any], index: int) -> Any:
    if not 0 <= index < len(choices):
        raise ContentError(f"a choice is {index}, expected 0 to {len(choices) - 1}")
    return choices[index]


def _counts(value: bytes, at: int, block: Callable[[int, int], int]) -> int:
    """Read the blocks of a list, each by a function of its count; return the position after it."""
    while True:
        count, at = zigzag(value, at)
        if count < 0:
            count, (_, at) = -count, zigzag(value, at)
        if count == 0:
            return at
        if count > len(value):  # items may have no bytes
            raise ContentError(f"a list has {count} items, the record {len(value)} bytes")
        spend(count)
        at = block(count, at)


def _array(schema: Mapping[str, Any], of: _Of) -> Read:
    read = of(schema["items"])

    def array(value: bytes, at: int) -> tuple[list[Any], int]:
        items: list[Any] = []

        def block(count: int, at: int) -> int:
            for _ in range(count):
                item, at = read(value, at)
                items.append(item)
            return at

        return items, _counts(value, at, block)

    return array


def _map(schema: Mapping[str, Any], of: _Of) -> Read:
    read = of(schema["values"])

    def mapping(value: bytes, at: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}

        def block(count: int, at: int) -> int:
            for _ in range(count):
                name, at = _text(value, at)
                found[name], at = read(value, at)
            return at

        return found, _counts(value, at, block)

    return mapping


def _record(schema: Mapping[str, Any], of: _Of) -> Read:
    parts = list(_parts(schema["fields"], of))
    names = [field["name"] for field in schema["fields"]]
    make, cost = object_maker(names), object_cost(names)

    def record(value: bytes, at: int) -> tuple[Any, int]:
        spend(cost)
        contents: list[Any] = []
        for part in parts:
            at = part(contents, value, at)
        return make(*contents), at

    return record


def _parts(fields: Iterable[Mapping[str, Any]], of: _Of) -> Iterator[_Part]:
    """Yield what reads the fields; neighbours of fixed length are read at once."""
    types = (field["type"] for field in fields)
    for is_fixed, group in groupby(types, lambda kind: _code(kind) is not None):
        if is_fixed:
            yield _run("".join(map(str, map(_code, group))))
        else:
            yield from map(_single, map(of, group))


def _code(kind: Any) -> str | None:
    while isinstance(kind, dict):
        kind = kind["type"]
    return _FIXED.get(kind) if isinstance(kind, str) else None


def _run(codes: str) -> _Part:
    form = struct.Struct(f"<{codes}")
    unpack, size = form.unpack_from, form.size

    def run(contents: list[Any], value: bytes, at: int) -> int:
        contents += unpack(value, at)
        return at + size

    return run


def _single(read: Read) -> _Part:
    def single(contents: list[Any], value: bytes, at: int) -> int:
        content, at = read(value, at)
        contents.append(content)
        return at

    return single


_PRIMITIVES: Mapping[str, Read] = {
    "null": _null,
    "int": zigzag,
    "long": zigzag,
    "string": _text,
    "bytes": _ignored(_bytes),
    **{name: _unpacked(code) for name, code in _FIXED.items()},
}
_COMPLEX: Mapping[str, Callable[[Mapping[str, Any], _Of], Read]] = {
    "record": _record,
    "error": _record,
    "enum": _enum,
    "array": _array,
    "map": _map,
    "fixed": lambda schema, of: _ignored(_fixed(schema["size"])),
}
