"""What of a document a schema has: the rest is left out before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Shape = Mapping[str, Any] | None
"""The names that an object may have, with the shapes of their contents; None is anything.

The name ``EACH`` stands for all items of a list, or contents of a map.
"""

EACH = "*"  # in no format the name of a field


def fitted(content: Any, shape: Shape, left_out: set[str], place: str = "") -> Any:
    """Return content without what the shape does not have, and add its names to a set."""
    if shape is None:
        return content
    if isinstance(content, list):
        return [fitted(item, shape.get(EACH), left_out, place) for item in content]
    if not isinstance(content, dict):
        return content
    if EACH in shape:
        return {
            name: fitted(inner, shape[EACH], left_out, place) for name, inner in content.items()
        }
    left_out.update(place + name for name in content.keys() - shape.keys())
    return {
        name: fitted(inner, shape[name], left_out, f"{place}{name}.")
        for name, inner in content.items()
        if name in shape
    }
