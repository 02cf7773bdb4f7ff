"""Settings that change in place: the model of a partition goes on with them from an offset on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import NUMERIC, Kind

_IN_PLACE = {
    "alarm_rate",
    "features",
    "initial_model",
    "kinds",
    "learner.max_nodes",
    "learner.memory",
    "transforms",
}


class Epoch(NamedTuple):
    """Settings that a model had until an offset, of those that p-values depend on."""

    until: int
    settings: Mapping[str, Any]


Epochs = tuple[Epoch, ...]
"""Those of a model, the first ones first."""


class Change(NamedTuple):
    """Settings with which a model is to go on from an offset on, and their digest."""

    settings: Settings
    offset: int
    digest: str


def added_numbers(before: Settings, now: Settings) -> tuple[str, ...] | None:
    """Return the fields that settings add to those of others, which must be numbers.

    None if one is not, if a field is left out or is another kind of number than before, or if a
    partition chooses its fields itself.
    """
    old, new = before.chosen_fields, now.chosen_fields
    if old is None or new is None:
        return () if before.features == now.features and _same_fields(before, now) else None
    added = tuple(field for field in new if field not in old)
    kinds = dict(now.kinds)
    are_numbers = all(kinds.get(field, Kind.NUMBER) in NUMERIC for field in added)
    is_more = set(old) <= set(new) and _same_fields(before, now, added)
    return added if are_numbers and is_more else None


def is_in_place(before: Settings, now: Settings, changed: set[str]) -> bool:
    """Return whether a model can go on with these settings, of which some ``changed``."""
    has_new_model = "initial_model" in changed and now.initial_model is not None
    is_possible = changed <= _IN_PLACE and not has_new_model
    return is_possible and added_numbers(before, now) is not None


def _same_fields(before: Settings, now: Settings, added: tuple[str, ...] = ()) -> bool:
    """Return whether all fields but those that were ``added`` are as they were."""
    tables = (before.kinds, now.kinds), (before.transforms, now.transforms)
    return all(
        dict(old) == {field: value for field, value in new if field not in added}
        for old, new in tables
    )
