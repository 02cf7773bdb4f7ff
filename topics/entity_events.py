"""Encodes the events of entities for the anomalies topic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson


class Aspect(Protocol):
    """One way in which an entity differs from the others; `learner.Aspect` implements it."""

    @property
    def name(self) -> str:
        """`level`, `spread` or `kinds`."""

    @property
    def column(self) -> int | None:
        """Number of the field; None for `kinds`."""

    @property
    def value(self) -> float:
        """The entity's level or standard deviation; NaN for `kinds`."""

    @property
    def usual(self) -> float:
        """The one in the middle of all entities; NaN for `kinds`."""

    @property
    def deviations(self) -> float:
        """How far the entity is from the others, in standard deviations of these."""


class EntityEvent(Protocol):
    """An entity that is new, unusual as a whole, or usual again; `learner` implements it."""

    @property
    def state(self) -> str:
        """`new`, `unusual` or `usual`."""

    @property
    def entity(self) -> str:
        """Its name."""

    @property
    def p_value(self) -> float:
        """Share of entities expected to be at least as unusual; NaN for `new`."""

    @property
    def aspects(self) -> Sequence[Aspect]:
        """In which ways it differs, the most unusual first."""


def encode_entity_event(
    source: Mapping[str, Any], event: EntityEvent, fields: Sequence[str]
) -> bytes:
    """Return the event of an entity; `source` is the place of the record that completed it."""
    message = {"event": "entity", **source, "state": event.state, "entity": event.entity}
    if not math.isnan(event.p_value):
        message["entity_p_value"] = event.p_value
    if event.aspects:
        message["aspects"] = [aspect_data(aspect, fields) for aspect in event.aspects]
    return orjson.dumps(message)


def aspect_data(aspect: Aspect, fields: Sequence[str]) -> dict[str, Any]:
    """Return an aspect as plain data; NaN becomes null in JSON."""
    return {
        "aspect": aspect.name,
        "field": None if aspect.column is None else fields[aspect.column],
        "value": aspect.value,
        "usual": aspect.usual,
        "deviations": aspect.deviations,
    }
