"""The settings of notifications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .section import Section, setting
from .value_types import ADDRESS, ADDRESSES, ALL_EVENTS, NAMES, TEXT, choice, optional, some


@dataclass(frozen=True, slots=True)
class NotifySettings(Section):
    """Whom `faust-oslrau notify` tells of events, and of which; the worker has no use for it."""

    prefix: ClassVar[str] = "notify."

    alertmanager: str | None = setting(None, optional(ADDRESS))
    webhook: tuple[str, ...] | None = setting(None, optional(ADDRESSES), secret=True)
    template: str | None = setting(None, optional(TEXT))
    events: tuple[str, ...] = setting(ALL_EVENTS, some(*ALL_EVENTS))
    severity: str = setting("minor", choice("minor", "major", "critical"))
    fields: tuple[str, ...] | None = setting(None, optional(NAMES))
    entities: tuple[str, ...] | None = setting(None, optional(NAMES))
