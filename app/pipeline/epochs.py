"""Settings that change in place: the model of a partition goes on with them from an offset on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Kind

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


class Added(NamedTuple):
    """Fields that settings add to those of others."""

    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


def added_fields(before: Settings, now: Settings) -> Added | None:
    """Return the fields that settings add to those of others.

    None if a field is left out or of another kind than before, or if a partition that chose its
    fields itself has others named, or the other way round.
    """
    old, new = before.chosen_fields, now.chosen_fields
    if old is None or new is None:
        is_same = before.features == now.features and _same_fields(before, now)
        return Added() if is_same else None
    added = tuple(field for field in new if field not in old)
    if not (set(old) <= set(new) and _same_fields(before, now, added)):
        return None
    categories = {field for field, kind in now.kinds if kind == Kind.CATEGORY}
    return Added(
        tuple(field for field in added if field not in categories),
        tuple(field for field in added if field in categories),
    )


def is_in_place(settings: Settings, changed: set[str]) -> bool:
    """Return whether a model can go on with settings of which some ``changed``, but for fields."""
    has_new_model = "initial_model" in changed and settings.initial_model is not None
    return changed <= _IN_PLACE and not has_new_model


def _same_fields(before: Settings, now: Settings, added: tuple[str, ...] = ()) -> bool:
    """Return whether all fields but those that were ``added`` are as they were."""
    tables = (before.kinds, now.kinds), (before.transforms, now.transforms)
    return all(
        dict(old) == {field: value for field, value in new if field not in added}
        for old, new in tables
    )
