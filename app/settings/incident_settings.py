"""The settings of incidents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from faust_oslrau.app.errors import SettingsError

from .section import Section, setting
from .value_types import integer, number, optional


@dataclass(frozen=True, slots=True)
class IncidentSettings(Section):
    """When incidents open and close, and how severe they are.

    `faust_oslrau.learner.IncidentParameters` documents them.
    """

    prefix: ClassVar[str] = "incidents."

    false_alarm_rate: float = setting(1e-5, number(0, 0.01, closed="high"))
    quiet_records: int = setting(256, integer(1))
    quiet_seconds: float | None = setting(None, optional(number(0, 1e9, closed="high")))
    major: float = setting(50.0, number(0, 100, closed="low high"))
    critical: float = setting(75.0, number(0, 100, closed="low high"))

    def __post_init__(self) -> None:
        """Check the fields, then that severities ascend."""
        Section.__post_init__(self)  # super() fails, as dataclass slots create a new class
        if self.major > self.critical:
            raise SettingsError(
                "setting incidents.major: expected at most incidents.critical, "
                f"{self.critical:g}, got {self.major:g}"
            )
