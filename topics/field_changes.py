"""Encodes the events of fields for the anomalies topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson


class FieldState(StrEnum):
    """What became of a field."""

    APPEARED = "appeared"
    VANISHED = "vanished"
    TYPE = "type"
    UNIT = "unit"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A change of what the records of a partition hold.

    Attributes
    ----------
    state
        A field that is not chosen has appeared, or one that had vanished; or a chosen one has
        vanished, holds another type, or numbers that look like those of another unit.
    field
        Its name.
    before, now
        What it held and holds, with `FieldState.TYPE`: ``number``, ``text`` or ``list``.
    factor
        By how much its level grew, with `FieldState.UNIT`.
    """

    state: FieldState
    field: str
    before: str | None = None
    now: str | None = None
    factor: float | None = None


def encode_field_change(source: Mapping[str, Any], change: FieldChange) -> bytes:
    """Return the event of a change that `source`, a record's place, shows."""
    message: dict[str, Any] = {"event": "field", **source, "state": change.state}
    message["field"] = change.field
    if change.now is not None:
        message |= {"before": change.before, "now": change.now}
    if change.factor is not None:
        message["factor"] = change.factor
    return orjson.dumps(message)
