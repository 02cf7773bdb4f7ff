"""Avro schemas of the messages of each topic, made from the table of members.

They have no texts: with other words, a schema would be another one, with another id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .json_schema import inside
from .members import Kind, Member

# An object is the text of its JSON: it may have any members.
_TYPES = {
    "string": "string",
    "integer": "long",
    "number": "double",
    "boolean": "boolean",
    "object": "string",
}


def avro_of(kinds: Sequence[Kind]) -> Any:
    """Return the schema of messages of a kind, or of one of several kinds."""
    named = set[str]()
    records = [_record(kind, "", kind.value.title(), named) for kind in kinds]
    return records if len(records) > 1 else records[0]


def _record(kind: Kind, prefix: str, name: str, named: set[str]) -> Any:
    """Return the record of the members with a prefix; a record that is known is its name."""
    if name in named:
        return f"oslrau.{name}"
    named.add(name)
    fields = [_field(kind, member, named) for member in inside(kind, prefix)]
    return {"type": "record", "name": name, "namespace": "oslrau", "fields": fields}


def _field(kind: Kind, member: Member, named: set[str]) -> dict[str, Any]:
    """Return a field; one that may be absent has a default, one that may only be null has none."""
    type_name, *null = member.type.split(" or ")
    of: Any = _TYPES.get(type_name)
    if type_name == "list":
        item = member.name.removesuffix("s").title()
        of = {"type": "array", "items": _record(kind, f"{member.name}[].", item, named)}
    absent = {"default": None} if kind in member.optional else {}
    return {"name": member.name, "type": ["null", of] if null or absent else of, **absent}
