"""Frozen groups of settings that check themselves."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any, ClassVar

from .errors import SettingsError
from .kinds import Kind


def setting(default: Any, kind: Kind, *, secret: bool = False) -> Any:
    """Return a dataclass field that holds values of one kind."""
    return field(default=default, repr=not secret, metadata={"kind": kind, "secret": secret})


class Section:
    """Reads each field by its kind, so that no object with a wrong value exists."""

    prefix: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Read every field."""
        for entry in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            if "kind" in entry.metadata:
                object.__setattr__(self, entry.name, self._read(entry))

    def _read(self, entry: Any) -> Any:
        value, kind = getattr(self, entry.name), entry.metadata["kind"]
        try:
            return kind.read(value)
        except (ValueError, TypeError, AttributeError, OverflowError):
            shown = "a secret" if entry.metadata["secret"] else short(value)
        raise SettingsError(
            f"setting {self.prefix}{entry.name}: expected {kind.expected}, got {shown}"
        )


def short(value: Any) -> str:
    """Return a value as errors show it, on one line."""
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
