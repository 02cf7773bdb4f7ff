"""What a scorer is given, checked before any of it is scored: rows, their entities and places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.entities.roster import Name, as_keys
from faust_oslrau.learner.errors import InvalidInputError
from faust_oslrau.learner.keys import Key
from faust_oslrau.learner.queries.derived import as_rows
from faust_oslrau.learner.state_schema import LARGEST_LEARNED

from .state import ScorerState


def checked(state: ScorerState, n_fields: int | None, X: ArrayLike) -> FloatArray:
    """Return rows (m, d) of ``n_fields`` columns, if known; refuse what could not be learned."""
    rows = as_rows(np.array(X, dtype=np.float64, order="C"), n_fields)
    fewest = state.n_categories
    if rows.shape[1] < fewest:
        raise InvalidInputError(f"X: expected {fewest} columns or more, got {rows.shape[1]}")
    for name, columns in _named_columns(state).items():
        if len(columns) > 0 and not 0 <= min(columns) <= max(columns) < rows.shape[1]:
            raise InvalidInputError(f"X: expected the columns {sorted(columns)} of {name}")
    return rows


def _named_columns(state: ScorerState) -> dict[str, list[int]]:
    """Return the columns that parameters name, by parameter."""
    relevance = state.relevance
    return {"directions": list(relevance.directions), "least": list(relevance.least)}


def transformed(state: ScorerState, given: FloatArray) -> FloatArray:
    """Return rows (m, d) transformed, their values within those that have squares."""
    return state.transforms.apply(given).clip(-LARGEST_LEARNED, LARGEST_LEARNED)


def keys_of(state: ScorerState, entity: Sequence[Name] | NDArray[Any] | None, m: int) -> list[Key]:
    """Return the entity of each of m rows, none without entities."""
    if state.entities is not None:
        return as_keys(entity, m)
    if entity is not None:
        raise InvalidInputError("entity: expected none without max_entities")
    return []


def groups_of(
    state: ScorerState, groups: Sequence[Name] | NDArray[Any] | None, m: int
) -> list[Key]:
    """Return the group of each of m rows, none where records are not counted by groups."""
    is_counted = state.rates is not None and state.rates.by is not None
    if is_counted != (groups is not None):
        raise InvalidInputError("groups: expected with rates_by, and only then")
    return as_keys(groups, m) if is_counted else []


def numbered(first: int, places: ArrayLike | None, m: int) -> IntArray:
    """Return number, offset and timestamp (m, 3) of the next rows, the first one's is ``first``."""
    found = np.empty((m, 3), np.int64)
    found[:, 0] = np.arange(first, first + m)
    if places is None:
        found[:, 1], found[:, 2] = found[:, 0], -1
        return found
    given = np.asarray(places, np.int64)
    if given.shape != (m, 2):
        raise InvalidInputError(f"places: expected a matrix ({m}, 2), got shape {given.shape}")
    found[:, 1:] = given
    return found
