"""What is known of an entity, as plain data for people and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faust_oslrau.learner import EntityProfile

from .events import aspect_data

# Beside the name of a field. The first ones are those of the entity.
_COLUMNS = (
    "n_values",
    "level",
    "usual_level",
    "spread",
    "usual_spread",
    "expected",
    "deviation",
)


def profile_data(profile: EntityProfile, fields: Sequence[str]) -> dict[str, Any]:
    """Return a profile by field; NaN stands for what is not known, and becomes null in JSON.

    The first ``fields`` are numbers, which profiles tell of; the others are categories.
    """
    columns = [getattr(profile, name).tolist() for name in _COLUMNS]
    rows = zip(fields[: len(profile.level)], *columns, strict=True)
    return {
        "entity_p_value": profile.p_value,
        "aspects": [aspect_data(aspect, fields) for aspect in profile.aspects],
        "fields": [dict(zip(("field", *_COLUMNS), row, strict=True)) for row in rows],
    }
