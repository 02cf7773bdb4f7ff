"""JSON Schemas of messages and of their headers, made from the table of members."""

from __future__ import annotations

import re
from typing import Any

from .members import EVENTS, MEMBERS, TEXT, Kind, Member

DRAFT = "http://json-schema.org/draft-07/schema#"

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def schema_of(kind: Kind) -> dict[str, Any]:
    """Return the schema of the JSON objects of a kind; they may have further members."""
    schema = {"$schema": DRAFT, "title": kind.value, **_object(kind, "")}
    if kind in EVENTS:
        schema["properties"]["event"]["const"] = kind.value
    if kind is Kind.ANOMALY:
        schema["properties"]["is_anomaly"]["const"] = True
    return schema


def headers_of(kind: Kind) -> dict[str, Any]:
    """Return the schema of the headers of a kind; there may be further ones."""
    return _of_members(kind, [member for member in _members(kind) if member.type == TEXT])


def inside(kind: Kind, prefix: str) -> list[Member]:
    """Return the members that have a prefix in the table, without it, and not those inside them."""
    named = [member for member in _members(kind) if member.type != TEXT]
    found = [m._replace(name=m.name[len(prefix) :]) for m in named if m.name.startswith(prefix)]
    return [member for member in found if "[]" not in member.name]


def _object(kind: Kind, prefix: str) -> dict[str, Any]:
    """Return the schema of an object whose members have a prefix in the table."""
    return _of_members(kind, inside(kind, prefix))


def _members(kind: Kind) -> list[Member]:
    return [member for member in MEMBERS if kind in member.of]


def _of_members(kind: Kind, members: list[Member]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {member.name: _member(kind, member) for member in members},
        "required": [member.name for member in members if kind not in member.optional],
    }


def _member(kind: Kind, member: Member) -> dict[str, Any]:
    types = ["string"] if member.type == TEXT else member.type.split(" or ")
    described = {"description": plain(member.meaning)}
    if types == ["list"]:
        return {"type": "array", **described, "items": _object(kind, f"{member.name}[].")}
    one_of = {"enum": [*member.values]} if member.values else {}
    return {"type": types if len(types) > 1 else types[0], **described, **one_of}


def plain(text: str) -> str:
    """Return Markdown without its links."""
    return _LINK.sub(r"\1", text)
