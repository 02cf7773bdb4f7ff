"""Finds entities by name in some partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faust_oslrau.app.partitions.held_partition import HeldPartition

# More than a reader looks through; a longer part of the name finds fewer.
_MOST = 20


async def search_entities(chosen: Sequence[HeldPartition], part: str) -> list[dict[str, Any]]:
    """Return some entities whose name has a part, those with exactly this name first."""
    found = [
        partition.tp._asdict() | {"entity": name}
        for partition in chosen
        for name in await partition.search_entities(part, _MOST)
    ]
    return sorted(found, key=lambda each: each["entity"] != part)[:_MOST]
