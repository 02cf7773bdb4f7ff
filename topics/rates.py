"""Encodes the events of rates for the anomalies topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import orjson


class RateChange(Protocol):
    """A change of how many records come; `learner.RateChange` implements it."""

    @property
    def state(self) -> str:
        """`began` or `ended`."""

    @property
    def entity(self) -> str | None:
        """The entity, or the group, whose records they are; None for the partition."""

    @property
    def by(self) -> str | None:
        """The field whose values are the groups; None for entities and the partition."""

    @property
    def since(self) -> int:
        """When the change began, in milliseconds since 1970 (UTC)."""

    @property
    def seconds(self) -> float:
        """The length of a window."""

    @property
    def records(self) -> int:
        """Records in the latest window."""

    @property
    def expected(self) -> float:
        """How many were expected."""

    @property
    def low(self) -> int:
        """The quantile at 1 %."""

    @property
    def high(self) -> int:
        """The quantile at 99 %."""


def encode_rate_change(source: Mapping[str, Any], change: RateChange) -> bytes:
    """Return the event of a change that `source`, a record's place, shows."""
    message = {
        "event": "rate",
        **source,
        "state": change.state,
        **_whose(change),
        "since": change.since,
        "window_seconds": change.seconds,
        "records": change.records,
        "expected": change.expected,
        "low": change.low,
        "high": change.high,
    }
    return orjson.dumps(message)


def _whose(change: RateChange) -> dict[str, str]:
    if change.entity is None:
        return {}
    if change.by is None:
        return {"entity": change.entity}
    return {"field": change.by, "category": change.entity}
