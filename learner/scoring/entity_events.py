"""What is told of entities as a whole, beside the scores of their records."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from faust_oslrau.learner.arrays import FloatArray

NEW, UNUSUAL, USUAL = "new", "unusual", "usual"
"""An entity was seen for the first time; became unusual among all entities; is so no more."""

LEVEL, SPREAD, KINDS = "level", "spread", "kinds"
"""What may be unusual: the level or the spread of a field, or how often which kinds of records
come."""


class Aspect(NamedTuple):
    """One way in which an entity differs from the others.

    Attributes
    ----------
    name
        `LEVEL`, `SPREAD` or `KINDS`.
    column
        The field; None for `KINDS`, which is about all fields.
    value, usual
        The entity's level or standard deviation, and the one in the middle of all entities, in the
        field's own units; a standard deviation is one of the transformed field. NaN for `KINDS`.
    deviations
        How far the entity is from the others, in standard deviations of these; above 0 for
        `KINDS`.
    """

    name: str
    column: int | None
    value: float
    usual: float
    deviations: float


class EntityEvent(NamedTuple):
    """An entity that is new, became unusual as a whole, or is usual again.

    Attributes
    ----------
    row
        The row of the call after which this is known.
    state
        `NEW`, `UNUSUAL` or `USUAL`.
    entity
        The entity's name, up to 256 bytes of it.
    p_value
        Share of entities that are expected to be at least as unusual; NaN for `NEW`.
    aspects
        In which ways it differs, the most unusual first; none but for `UNUSUAL`.
    """

    row: int
    state: str
    entity: str
    p_value: float
    aspects: tuple[Aspect, ...]


class EntityProfile(NamedTuple):
    """What is known of an entity, and of all entities: arrays (d,) in the fields' own units.

    With a transform, levels and expected values are transformed back; spreads and deviations are
    those of the transformed field.

    Attributes
    ----------
    n_values
        Records with a value of the field; older ones fade, after about a thousand.
    level, spread
        Mean and standard deviation of the entity's values.
    usual_level, usual_spread
        Those in the middle of all entities.
    expected, deviation
        What its next record is expected to be: drawn towards the others while it has few records.
    p_value
        Share of entities expected to be at least as unusual; NaN if too little is known.
    aspects
        In which ways it differs, the most unusual first.
    """

    n_values: FloatArray
    level: FloatArray
    spread: FloatArray
    usual_level: FloatArray
    usual_spread: FloatArray
    expected: FloatArray
    deviation: FloatArray
    p_value: float
    aspects: tuple[Aspect, ...]

    def without_fields(self) -> Self:
        """Return what is known of an entity whose records have no numbers."""
        return type(self)._make([*(np.empty(0) for _ in self[:-2]), *self[-2:]])
