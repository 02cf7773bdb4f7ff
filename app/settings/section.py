"""The base of frozen groups of settings that validate their fields."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any, ClassVar

from faust_oslrau.app.errors import SettingsError

from .value_types import ValueType


def setting(default: Any, value_type: ValueType, *, secret: bool = False) -> Any:
    """Return a dataclass field for a setting of this type."""
    return field(
        default=default, repr=not secret, metadata={"value_type": value_type, "secret": secret}
    )


class Section:
    """Converts and validates each field, so that no object with an invalid value exists."""

    prefix: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Convert and validate every field."""
        for entry in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            if "value_type" in entry.metadata:
                object.__setattr__(self, entry.name, self._read(entry))

    def _read(self, entry: Any) -> Any:
        value, value_type = getattr(self, entry.name), entry.metadata["value_type"]
        try:
            return value_type.read(value)
        except (ValueError, TypeError, AttributeError, OverflowError):
            shown = "a secret" if entry.metadata["secret"] else short(value)
        raise SettingsError(
            f"setting {self.prefix}{entry.name}: expected {value_type.expected}, got {shown}"
        )


def short(value: Any) -> str:
    """Return the repr of a value for an error message, at most 80 characters long."""
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
