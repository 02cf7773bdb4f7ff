"""Changes of what the records of a partition hold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
