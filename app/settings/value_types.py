"""The types of settings: how to convert a value, and how to describe the expected values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class ValueType:
    """Converts a value from TOML, the environment or code; ValueError if it is invalid."""

    expected: str
    read: Callable[[Any], Any]


_T = TypeVar("_T")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
# Nothing that an address could hide a password in, or that means another folder.
_BUCKET = re.compile(
    r"(s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]{0,62}(/(?!\.{1,2}(/|$))[A-Za-z0-9._=-]+)*/?"
)
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smh]?)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}|\*")
# The learner's names; importing it here would take too long.
TRANSFORM_NAMES = ("log", "log1p", "asinh")
SIDE_NAMES = ("high", "low")
KIND_NAMES = ("number", "count", "category", "ignored")
CHOSEN_EVENTS = ("incidents", "new_entities", "unusual_entities", "silences")
ALL_EVENTS = (*CHOSEN_EVENTS, "rates", "fields", "drifts")
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def integer(low: int, high: int | None = None) -> ValueType:
    """Return the type of integers from `low` to `high`."""
    expected = f"an integer of at least {low}"
    if high is not None:
        expected = f"an integer from {low} to {high}"

    def read(value: Any) -> int:
        if isinstance(value, bool | float):
            raise ValueError
        return _within(int(value), low, high)

    return ValueType(expected, read)


def number(low: float, high: float, *, closed: str = "") -> ValueType:
    """Return the type of numbers between `low` and `high`; `closed` names the included bounds."""
    left, right = "[" if "low" in closed else "(", "]" if "high" in closed else ")"

    def read(value: Any) -> float:
        if isinstance(value, bool):
            raise ValueError
        found = float(value)
        _require(
            low < found < high or (low == found and left == "[") or (high == found and right == "]")
        )
        return found

    return ValueType(f"a number in {left}{low:g}, {high:g}{right}", read)


def choice(*names: str) -> ValueType:
    """Return the type of one of these names."""

    def read(value: Any) -> str:
        _require(value in names)
        return str(value)

    return ValueType("one of " + ", ".join(names), read)


def some(*names: str) -> ValueType:
    """Return the type of lists of some of these names, in their order."""

    def read(value: Any) -> tuple[str, ...]:
        found = _distinct(_listed(value))
        _require(all(name in names for name in found))
        return tuple(sorted(found, key=names.index))

    return ValueType("some of " + ", ".join(names), read)


def named(names: Sequence[str], example: str, **others: str) -> ValueType:
    """Return the type of fields with one of these names each, in the order of the fields.

    ``others`` are names that stand for one of them.
    """
    meant = {name: name for name in names} | others

    def read(value: Any) -> tuple[tuple[str, str], ...]:
        found = {_read_field(field): name.strip() for field, name in pairs(value).items()}
        _require(all(name in meant for name in found.values()))
        return tuple(sorted((field, meant[name]) for field, name in found.items()))

    return ValueType(f"fields with one of {', '.join(meant)} each, such as {example}", read)


def optional(value_type: ValueType) -> ValueType:
    """Return the type that also accepts None; in the environment it is written as `none`."""

    def read(value: Any) -> Any:
        return None if value in (None, "none") else value_type.read(value)

    return ValueType(f"{value_type.expected}, or none", read)


def _read_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    _require(isinstance(value, str) and value.lower() in _BOOLEANS)
    return _BOOLEANS[value.lower()]


def _read_text(value: Any) -> str:
    _require(isinstance(value, str) and bool(value.strip()) and value.isprintable())
    return str(value)


def _read_topic(value: Any) -> str:
    _require(isinstance(value, str) and bool(_TOPIC.fullmatch(value)) and value not in (".", ".."))
    return str(value)


def _read_topics(value: Any) -> tuple[str, ...]:
    return _distinct(_read_topic(name) for name in _listed(value))


def _read_features(value: Any) -> str | tuple[str, ...]:
    return "auto" if value == "auto" else _read_fields(value)


def _read_field(value: Any) -> str:
    _require(isinstance(value, str) and bool(value))
    value.encode("utf-8")  # raises for a lone surrogate, which no message can contain
    return str(value)


def _read_fields(value: Any) -> tuple[str, ...]:
    return _distinct(_read_field(name) for name in _listed(value))


def _read_optional_field(value: Any) -> str:
    _require(value != "none")  # what no field is called in the environment
    return _read_field(value)


def _read_snapshots(value: Any) -> str:
    kind, _, where = _read_text(value).partition(":")
    if kind == "topic":
        _read_topic(where)
    _require(
        value == "off"
        or (kind in ("topic", "folder") and bool(where))
        or _BUCKET.fullmatch(value) is not None
    )
    return str(value)


def _read_distances(value: Any) -> tuple[tuple[str, float], ...]:
    """Return fields with a positive number each, in the order of the fields."""
    found = {_read_field(field): float(number) for field, number in pairs(value).items()}
    _require(all(0.0 < number < math.inf for number in found.values()))
    return tuple(sorted(found.items()))


def pairs(value: Any) -> dict[str, Any]:
    """Return names with a value each, from a table, a text or pairs; ValueError if one is twice."""
    if isinstance(value, Mapping):
        found = list(value.items())
    elif isinstance(value, str):
        found = [tuple(part.rsplit("=", 1)) for part in _listed(value) if part]
    else:
        found = [tuple(pair) for pair in value]
    named = {name.strip(): content for name, content in found}
    _require(len(named) == len(found))
    return named


def _read_spans(value: Any) -> tuple[str, ...]:
    found = _distinct(_read_span(str(span)) for span in _listed(value))
    _require(len(found) <= 4)
    return found


def _read_span(text: str) -> str:
    found = _SPAN.fullmatch(text)
    _require(found is not None and float(found[1]) >= (0.001 if found[2] else 1.0))
    return text


def _read_window(value: Any) -> str:
    text = str(value)
    _require(bool(_SPAN.fullmatch(text)) and 1.0 <= window_seconds(text) <= 3600.0)
    return text


def window_seconds(text: str) -> float:
    """Return the seconds of a time such as 30s, 5m or 1h; 0 for a number without a unit."""
    return float(text[:-1]) * _SECONDS[text[-1]] if text[-1] in _SECONDS else 0.0


def _read_zone(value: Any) -> str:
    # As in `learner/seasons/calendar.py`, whose import would take seconds.
    _require(value in _zones())
    return str(value)


@cache
def _zones() -> frozenset[str]:
    # Factory is what a host has before it has a zone.
    return frozenset((files("tzdata") / "zones").read_text().split()) - {"Factory"}


def _read_address(value: Any) -> str:
    parts = urlsplit(_read_text(value))
    _require(parts.scheme in ("http", "https") and bool(parts.hostname))
    return str(value)


def _read_addresses(value: Any) -> tuple[str, ...]:
    return _distinct(_read_address(address) for address in _listed(value))


def _read_start(value: Any) -> str:
    if value in ("earliest", "latest"):
        return str(value)
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    _require(moment.tzinfo is not None)
    return moment.isoformat()


def _read_servers(value: Any) -> str:
    servers = [server.strip() for server in value.split(",")]
    found = [_SERVER.fullmatch(server) for server in servers]
    _require(all(match and 0 < int(match[2]) < 65536 for match in found))
    return ",".join(servers)


def _read_hosts(value: Any) -> tuple[str, ...]:
    names = _listed(value)
    _require(all(isinstance(name, str) and _HOST.fullmatch(name) for name in names))
    return _distinct(name.lower() for name in names) if names else ()


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [name.strip() for name in value.split(",")]
    _require(isinstance(value, list | tuple))
    return list(value)


def _distinct(names: Iterable[_T]) -> tuple[_T, ...]:
    found = tuple(names)
    _require(0 < len(found) == len(set(found)))
    return found


def _within(value: int, low: int, high: int | None) -> int:
    _require(low <= value and (high is None or value <= high))
    return value


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


BOOLEAN = ValueType("true or false", _read_boolean)
TEXT = ValueType("a non-empty text", _read_text)
TOPIC = ValueType("a topic name of letters, digits, '.', '_' and '-', at most 249", _read_topic)
TOPICS = ValueType("distinct topic names of letters, digits, '.', '_' and '-'", _read_topics)
FEATURES = ValueType('"auto" or a list of distinct field names', _read_features)
ENTITY = ValueType('"key" or the name of a field', _read_optional_field)
FIELD = ValueType("the name of a field", _read_optional_field)
EVENTS = some("records", *CHOSEN_EVENTS)
SNAPSHOTS = ValueType(
    "topic:NAME, folder:PATH, s3://BUCKET/PREFIX, the same with gs:// or az://, or off",
    _read_snapshots,
)
TRANSFORMS = named(TRANSFORM_NAMES, "latency=log1p")
KINDS = named(
    KIND_NAMES, "service=category", boolean="category", time="ignored", identifier="ignored"
)
DIRECTIONS = named(SIDE_NAMES, "latency=high")
DISTANCES = ValueType("fields with a positive number each, such as latency=20", _read_distances)
SPANS = ValueType("up to 4 different spans such as 10 (records), 30s, 5m or 1h", _read_spans)
WINDOW = ValueType("a time from 1s to 1h such as 30s or 1m", _read_window)
NAMES = ValueType("a list of distinct names", _read_fields)
ADDRESS = ValueType("an address that begins with http:// or https://", _read_address)
ADDRESSES = ValueType("distinct addresses that begin with http:// or https://", _read_addresses)
ZONE = ValueType("a time zone such as Europe/Berlin or UTC", _read_zone)
START = ValueType(
    '"earliest", "latest" or a time with its zone such as 2026-01-31T00:00:00Z', _read_start
)
HOSTS = ValueType("distinct host names or addresses without port, or *", _read_hosts)
SERVERS = ValueType("host:port, or several separated by commas", _read_servers)
