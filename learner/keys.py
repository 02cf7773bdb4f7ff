"""Entities by their keys, and what events call them."""

from __future__ import annotations

Key = bytes | None
"""Name of an entity; None for all records without one."""

LONGEST_NAME = 256
"""Bytes of an entity's name that events and incidents hold."""


def entity_name(key: Key) -> str:
    """Return the name of an entity as events tell it."""
    return (key or b"")[:LONGEST_NAME].decode(errors="replace")
