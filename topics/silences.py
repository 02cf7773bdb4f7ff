"""Encodes the events of silences for the anomalies topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import orjson


class Silence(Protocol):
    """A silence that was too long; `learner.Silence` implements it."""

    @property
    def state(self) -> str:
        """`began` or `ended`."""

    @property
    def entity(self) -> str | None:
        """The silent entity; None for the partition."""

    @property
    def last_offset(self) -> int:
        """Offset of the last record before the silence."""

    @property
    def last_timestamp(self) -> int:
        """Its timestamp in milliseconds since 1970 (UTC), -1 without one."""

    @property
    def seconds(self) -> float:
        """How long the silence has lasted."""

    @property
    def limit(self) -> float:
        """The seconds after which it was too long."""


def encode_silence(source: Mapping[str, Any], silence: Silence) -> bytes:
    """Return the event of a silence that `source`, a record's place, shows or ends."""
    message = {
        "event": "silence",
        **source,
        "state": silence.state,
        **({} if silence.entity is None else {"entity": silence.entity}),
        "last_offset": silence.last_offset,
        "last_timestamp": None if silence.last_timestamp < 0 else silence.last_timestamp,
        "seconds": silence.seconds,
        "limit_seconds": silence.limit,
    }
    return orjson.dumps(message)
