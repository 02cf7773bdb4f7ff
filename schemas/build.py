"""Write the schemas, and the table of members in the documentation: `python -m schemas.build`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .asyncapi import TOPICS, document, key
from .avro import avro_of
from .json_schema import schema_of
from .members import EVENTS, FIRST, MEMBERS, Kind, Member

_ROOT = Path(__file__).parents[1]
_PAGE = "docs/messages.md"
_HEAD = "| member | in | type | meaning |\n|---|---|---|---|\n"


def files() -> Mapping[str, str]:
    """Return the text of all files by their paths in the project."""
    schemas = {key(kind): schema_of(kind) for kind in Kind if kind is not Kind.DEAD_LETTER}
    written: dict[str, Any] = {f"schemas/{name}.json": data for name, data in schemas.items()}
    written["schemas/asyncapi.json"] = document()
    for topic, (_, kinds) in TOPICS.items():
        if Kind.DEAD_LETTER not in kinds:  # in the package; `schemas/` has links to them
            written[f"topics/formats/{topic}.avsc"] = avro_of(kinds)
    texts = {path: json.dumps(data, indent=2) + "\n" for path, data in written.items()}
    return {**texts, _PAGE: _page((_ROOT / _PAGE).read_text(encoding="utf-8"))}


def _page(text: str) -> str:
    """Return the page with the table as it is now."""
    before, _, rest = text.partition(_HEAD)
    _, _, after = rest.partition("\n\n")
    table = "\n".join(map(_row, MEMBERS))
    return f"{before}{_HEAD}{table}\n\n{after}"


def _row(member: Member) -> str:
    kinds = "" if "[]" in member.name else f" {', '.join(_named(member.of))}"
    since = "" if member.since == FIRST else f" Since {member.since}."
    return f"| `{member.name}` |{kinds} | {member.type} | {member.meaning}{since} |"


def _named(kinds: tuple[Kind, ...]) -> Iterator[str]:
    """Name the kinds; `event` stands for all that are events."""
    every = set(EVENTS) <= set(kinds)
    yield from (kind for kind in kinds if not (every and kind in EVENTS))
    if every:
        yield "event"


if __name__ == "__main__":
    for path, text in files().items():
        (_ROOT / path).write_text(text, encoding="utf-8")
