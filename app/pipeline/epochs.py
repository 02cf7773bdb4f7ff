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


def added_fields(
    before: Settings, now: Settings, chosen: Mapping[str, Kind] | None = None
) -> Added | None:
    """Return the fields that settings add to those of others.

    None if a field is left out or of another kind than before. ``chosen`` has the fields of a
    partition that chose them itself, and their kinds; from then on they may be named.
    """
    old, new = before.chosen_fields or chosen, now.chosen_fields
    kinds_before, kinds_now = dict(before.kinds), dict(now.kinds)
    if old is None or new is None:
        is_same = before.features == now.features and kinds_before == kinds_now
        return Added() if is_same and before.transforms == now.transforms else None
    if before.chosen_fields is None and chosen is not None:
        kinds_before, kinds_now = _but_numbers(chosen), _but_numbers(kinds_now)
    added = tuple(field for field in new if field not in old)
    tables = (kinds_before, kinds_now), (dict(before.transforms), dict(now.transforms))
    is_same = all(
        was == {field: of[field] for field in of if field not in added} for was, of in tables
    )
    if not (set(old) <= set(new) and is_same):
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


def _but_numbers(kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the kinds of fields that are no plain numbers, as those without a kind are."""
    return {field: kind for field, kind in kinds.items() if kind != Kind.NUMBER}
