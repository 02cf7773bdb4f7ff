"""Writes rows, which are JSON, in the binary encoding of Avro.

fastavro cuts 3.7 to an int, makes an infinity of a number beyond a float, and takes no 2.0 for an
int that may be null. Here a number is written as it is, or refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from .avro_writer import Write, whole_number
from .errors import ContentError

_Of = Callable[[Any], Write]
"""Returns what writes the values of a schema; it raises ContentError for other values."""

_END = b"\0"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED = ("record", "error", "enum", "fixed")
# Of texts, in microseconds; a number is in the unit already.
_UNITS = {"timestamp-millis": 1e-3, "timestamp-micros": 1, "timestamp-nanos": 1000}
_MOST_TOLD = 40


def row_writer(schema: Any, named: Mapping[str, Any]) -> Write:
    """Return what writes the values of a parsed schema; ``named`` are the types that it may name.

    The schema does not contain itself.
    """
    made: dict[str, Write] = {}

    def of(schema: Any) -> Write:
        if isinstance(schema, list):
            return _union(schema, named, of)
        if isinstance(schema, str) and schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        if not isinstance(schema, str) and schema["type"] not in _NAMED:
            return _anonymous(schema, of)
        name = schema if isinstance(schema, str) else schema["name"]
        if name not in made:
            made[name] = _anonymous(named[name], of)
        return made[name]

    return of(schema)


def _anonymous(schema: Any, of: _Of) -> Write:
    kind = schema["type"]
    match schema.get("logicalType"), kind:
        case "decimal", "bytes" | "fixed":
            return _unwritten("decimals")
        case "date", "int":
            return _date
        case str(unit), "long" if unit in _UNITS:
            return _time(_UNITS[unit])
    return _COMPLEX[kind](schema, of) if kind in _COMPLEX else of(kind)


def _refused(expected: str, content: Any) -> ContentError:
    got = {dict: "an object", list: "a list", type(None): "null"}.get(type(content))
    return ContentError(f"expected {expected}, got {got or repr(content)[:_MOST_TOLD]}")


def _is_number(content: Any) -> bool:
    return isinstance(content, int | float) and not isinstance(content, bool)


def _null(content: Any) -> bytes:
    if content is not None:
        raise _refused("null", content)
    return b""


def _boolean(content: Any) -> bytes:
    if not isinstance(content, bool):
        raise _refused("true or false", content)
    return bytes((content,))


def _text(content: Any) -> bytes:
    if not isinstance(content, str):
        raise _refused("a text", content)
    encoded = content.encode()
    return whole_number(len(encoded)) + encoded


def _whole(bits: int) -> Write:
    limit = 1 << (bits - 1)

    def whole(content: Any) -> bytes:
        if _is_number(content) and content == int(content) and -limit <= content < limit:
            return whole_number(int(content))
        raise _refused(f"a whole number of {bits} bits", content)

    return whole


def _number(code: str, name: str) -> Write:
    pack = struct.Struct(f"<{code}").pack

    def number(content: Any) -> bytes:
        if _is_number(content):
            try:
                return pack(content)
            except OverflowError:
                pass
        raise _refused(f"a number as {name} holds", content)

    return number


def _date(content: Any) -> bytes:
    if not isinstance(content, str):
        return _PRIMITIVES["int"](content)
    try:
        return whole_number((date.fromisoformat(content) - _EPOCH.date()).days)
    except ValueError:
        raise _refused("a date", content) from None


def _time(unit: float) -> Write:
    def time(content: Any) -> bytes:
        if not isinstance(content, str):
            return _PRIMITIVES["long"](content)
        try:
            found = datetime.fromisoformat(content)
        except ValueError:
            raise _refused("a time", content) from None
        since = (found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH
        return whole_number(int(since // timedelta(microseconds=1) * unit))

    return time


def _unwritten(what: str) -> Write:
    def refuse(content: Any) -> bytes:
        raise ContentError(f"{what} of Avro cannot be written")

    return refuse


def _enum(schema: Mapping[str, Any], of: _Of) -> Write:
    written = {symbol: whole_number(at) for at, symbol in enumerate(schema["symbols"])}

    def enum(content: Any) -> bytes:
        if not isinstance(content, str) or content not in written:
            raise _refused(f"one of {', '.join(written)}", content)
        return written[content]

    return enum


def _array(schema: Mapping[str, Any], of: _Of) -> Write:
    write = of(schema["items"])

    def array(content: Any) -> bytes:
        if not isinstance(content, list):
            raise _refused("a list", content)
        return _block(list(map(write, content)))

    return array


def _map(schema: Mapping[str, Any], of: _Of) -> Write:
    write = of(schema["values"])

    def mapping(content: Any) -> bytes:
        if not isinstance(content, dict):
            raise _refused("an object", content)
        return _block([_text(name) + write(inner) for name, inner in content.items()])

    return mapping


def _block(items: Sequence[bytes]) -> bytes:
    return b"".join([whole_number(len(items)), *items, _END]) if items else _END


def _record(schema: Mapping[str, Any], of: _Of) -> Write:
    fields = [(each["name"], each.get("default"), of(each["type"])) for each in schema["fields"]]

    def record(content: Any) -> bytes:
        if not isinstance(content, dict):
            raise _refused("an object", content)
        return b"".join([_field(content, *field) for field in fields])

    return record


def _field(content: Mapping[str, Any], name: str, default: Any, write: Write) -> bytes:
    try:
        return write(content.get(name, default))
    except ContentError as error:
        raise ContentError(f"field {name}: {error}") from None


def _union(branches: Sequence[Any], named: Mapping[str, Any], of: _Of) -> Write:
    """Return what writes the first type that takes a value; a record that has most of its names."""
    ways = [
        (_names(each, named), whole_number(at), of(each))
        # 0.1 is another number as a float
        for at, each in sorted(enumerate(branches), key=lambda found: found[1] == "float")
    ]

    def union(content: Any) -> bytes:
        told: list[str] = []
        has = frozenset(content if isinstance(content, dict) else ())
        for _, index, write in sorted(ways, key=lambda way: -len(way[0] & has)):
            try:
                return index + write(content)
            except ContentError as error:
                if write is not _null or len(ways) == 1:
                    told.append(str(error))
        raise ContentError(", or ".join(told))

    return union


def _names(schema: Any, named: Mapping[str, Any]) -> frozenset[str]:
    found = named.get(schema) if isinstance(schema, str) else schema
    fields = found.get("fields", ()) if found else ()
    return frozenset(field["name"] for field in fields)


_PRIMITIVES: Mapping[str, Write] = {
    "null": _null,
    "boolean": _boolean,
    "int": _whole(32),
    "long": _whole(64),
    "float": _number("f", "float"),
    "double": _number("d", "double"),
    "string": _text,
    "bytes": _unwritten("bytes"),
}
_COMPLEX: Mapping[str, Callable[[Mapping[str, Any], _Of], Write]] = {
    "record": _record,
    "error": _record,
    "enum": _enum,
    "array": _array,
    "map": _map,
    "fixed": lambda schema, of: _unwritten("bytes"),
}
