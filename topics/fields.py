"""Finds fields in a JSON object by their names.

A name is a top-level key. If the object has no such key, the name is a dotted path through nested
objects.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from operator import getitem, itemgetter
from typing import Any

JsonObject = Mapping[str, Any]

_MOST_LISTED = 20


def find(document: JsonObject, field: str) -> Any:
    """Return the content of a field; None if it is absent."""
    if field in document or "." not in field:
        return document.get(field)
    content: Any = document
    for key in field.split("."):
        if not isinstance(content, dict):
            return None
        content = content.get(key)
    return content


def put(document: dict[str, Any], field: str, content: Any) -> None:
    """Replace the content of a field that `find` finds."""
    if field in document or "." not in field:
        document[field] = content
        return
    *path, last = field.split(".")
    for key in path:
        document = document[key]
    document[last] = content


def fields_with(
    document: JsonObject, wanted: Callable[[object], bool], most: int
) -> tuple[str, ...] | None:
    """Return the sorted names of the fields whose content is `wanted`.

    Return None if there are more than `most`; the search ends there.
    """
    paths = list(islice((path for path, found in contents(document) if wanted(found)), most + 1))
    if len(paths) > most:
        return None
    return tuple(sorted({path for path in paths if wanted(find(document, path))}))


def is_number(content: object) -> bool:
    """Tell whether the content of a field is a number; booleans are."""
    return isinstance(content, int | float)


def is_text(content: object) -> bool:
    """Tell whether the content of a field is a string."""
    return isinstance(content, str)


def number_of(content: object) -> float | None:
    """Return the number that a text holds, such as "20.31"; None if the content is no such text."""
    if not isinstance(content, str) or "_" in content:
        return None
    try:
        number = float(content)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def is_beyond(content: float) -> bool:
    """Tell whether a number is beyond the range of a double."""
    return abs(content) > sys.float_info.max


def contents(document: JsonObject) -> Iterator[tuple[str, Any]]:
    """Yield the names and contents of the fields, also of those in inner objects.

    Among them are nested keys that contain a dot, which no name can reach.
    """
    inside = [("", iter(document.items()))]
    while inside:  # an explicit stack, as JSON may nest deeper than Python recurses
        prefix, members = inside[-1]
        for key, content in members:
            if isinstance(content, dict):
                inside.append((f"{prefix}{key}.", iter(content.items())))
                break
            yield prefix + key, content
        else:
            inside.pop()


def parent_of(field: str) -> tuple[str, ...]:
    """Return the keys of the objects that enclose the field."""
    return tuple(field.split(".")[:-1])


def tuple_getter(fields: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a fast getter of all `fields`; fields with the same parent must be neighbours.

    The getter raises KeyError or TypeError for a document from which it cannot read all fields.
    """
    flat = _keys_getter(fields)
    dotted = frozenset(field for field in fields if "." in field)
    if not dotted:
        return flat
    groups = _groups(fields)

    def get(document: Any) -> tuple[Any, ...]:
        if not dotted.isdisjoint(document):
            return flat(document)
        values: tuple[Any, ...] = ()
        for parent, keys in groups:
            values += keys(reduce(getitem, parent, document))
        return values

    return get


def _groups(
    fields: tuple[str, ...],
) -> list[tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]]:
    keys_of: dict[tuple[str, ...], list[str]] = {}
    for field in fields:
        keys_of.setdefault(parent_of(field), []).append(field.split(".")[-1])
    return [(parent, _keys_getter(tuple(keys))) for parent, keys in keys_of.items()]


def _keys_getter(keys: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(keys) == 1:  # itemgetter of one key returns no tuple
        return lambda document: (document[keys[0]],)
    return itemgetter(*keys)


def listed(names: Sequence[str]) -> str:
    """Return the first names as a text, with the number of the others."""
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more:,} more" if more > 0 else "")
