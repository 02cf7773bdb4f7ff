"""The settings of incidents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .section import Section, setting
from .value_types import integer, number, optional


@dataclass(frozen=True, slots=True)
class IncidentSettings(Section):
    """When incidents open and close.

    `faust_oslrau.learner.IncidentParameters` documents them.
    """

    prefix: ClassVar[str] = "incidents."

    false_alarm_rate: float = setting(1e-5, number(0, 0.01, closed="high"))
    quiet_records: int = setting(256, integer(1))
    quiet_seconds: float | None = setting(None, optional(number(0, 1e9, closed="high")))
