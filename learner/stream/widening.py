"""Fields that are added to the rows of a stream, as if they had been missing in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from faust_oslrau.learner.categories.layer import MOST_FIELDS, Categories
from faust_oslrau.learner.entities.habits import WIDEST as WIDEST_HABITS
from faust_oslrau.learner.errors import InvalidParameterError
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.scoring.neighbours import UNKNOWN
from faust_oslrau.learner.scoring.tail_mass import WIDEST as WIDEST_MASS
from faust_oslrau.learner.scoring.transforms import Transforms
from faust_oslrau.learner.stored import Places

from .state import Pending, ScorerState

NEARNESS = 1
"""Place of nearness among the measures of records, where it is one."""

T = TypeVar("T")


def add_numbers(state: ScorerState, transforms: Sequence[str | None]) -> None:
    """Let rows have more numbers, each with a transform or None: see `StreamScorer.add_numbers`."""
    k, held = len(transforms), state.n_fields
    named = {at: name for at, name in enumerate(transforms) if name is not None}
    if held is None:
        is_new = not named and state.learner.n_records_ == 0
        require(is_new, "transforms", list(transforms), "rows before numbers are added")
        return
    d = state.n_numbers or 0
    _check(state, d + k)
    moved = _moved(state.transforms.names, d, k)
    state.transforms = Transforms(moved | {d + at: name for at, name in named.items()})
    state.relevance.directions = _moved(state.relevance.directions, d, k)
    state.relevance.least = _moved(state.relevance.least, d, k)
    # beside categories alone, the first one takes the place of one that is always missing
    fields, columns = Places(np.arange(held), d + k), _columns(state, held, d + k)
    state.learner.add_variables(columns)
    state.pending = [_wider(state, piece, columns) for piece in state.pending]
    state.reference.add_fields(columns)
    state.ranges.add_fields(columns)
    for part in (state.neighbours, state.tail_mass, state.repeats, state.late):
        part.add_fields(fields)
    state.late.rows = columns.widened(state.late.rows, 1)
    state.late_categories.forget_rows()  # they would have to be wider
    for layer in (state.entities, state.history, state.seasons):
        if layer is not None:
            layer.add_fields(fields)
    if state.categories is not None:
        state.categories.add_fields(fields)
    _widen_blames(state, Places.after(d, d + state.n_categories, k))
    if state.has_nearness:
        state.ranking.lower(NEARNESS, k * UNKNOWN)
    state.n_fields = d + k


def add_categories(state: ScorerState, k: int) -> None:
    """Let rows have more categories: see `StreamScorer.add_categories`."""
    _check_categories(state, k)
    had_nearness, pending = state.has_nearness, sum(len(piece.rows) for piece in state.pending)
    if state.categories is None:
        state.categories = Categories.beside(k, pending, state.n_fields or 0)
    else:
        state.categories.add_categories(k)
    before = state.n_categories - k
    state.late_categories.add_fields(Places.after(before, before, k))
    state.late_categories.forget_rows()  # they would have to be wider
    state.reference.forget_marks()
    state.pending = [
        piece._replace(marks=np.full(len(piece.rows), np.nan)) for piece in state.pending
    ]
    before += state.n_numbers or 0
    _widen_blames(state, Places.after(before, before, k))
    if had_nearness:
        state.ranking.leave_out(NEARNESS)
        state.pending = [_without_nearness(piece) for piece in state.pending]


def _widen_blames(state: ScorerState, columns: Places) -> None:
    """Let incidents blame more columns of the stream."""
    if state.incidents is not None:
        for blame in state.incidents.blames:
            blame.add_fields(columns)


def takes_fields(state: ScorerState, numbers: int, categories: int) -> bool:
    """Return whether rows may have so many more numbers and categories."""
    try:
        if numbers > 0:
            _check(state, (state.n_numbers or 0) + numbers)
        if categories > 0:
            _check_categories(state, categories)
    except InvalidParameterError:
        return False
    return True


def _check_categories(state: ScorerState, k: int) -> None:
    """Refuse categories with which the state would not be what it is."""
    c, has_units = state.n_categories + k, state.has_units or state.categories is not None
    require(c <= MOST_FIELDS, "categories", c, f"at most {MOST_FIELDS}")
    require(has_units, "categories", c, "a learning batch before categories are added")


def _without_nearness(piece: Pending) -> Pending:
    """Return rows that wait to be learned without that measure."""
    if piece.measures.shape[1] <= NEARNESS:  # they have no scores
        return piece
    return piece._replace(measures=np.delete(piece.measures, NEARNESS, axis=1))


def _check(state: ScorerState, n: int) -> None:
    """Refuse numbers, ``n`` in all, with which the state would not be what it is."""
    held = state.n_fields or 0
    require(held > 0, "numbers", n, "rows before numbers are added")
    has_habits = state.entities is not None and state.history is None
    for widest in [WIDEST_HABITS] * has_habits + [WIDEST_MASS]:
        require(not held <= widest < n, "numbers", n, f"at most {widest}, as a model has them")
    more = (n - held) * (state.n_columns or held) // held
    has_room = state.learner.has_room(more)
    require(has_room, "numbers", n, "few enough for the blocks of the background")


def _columns(state: ScorerState, held: int, n: int) -> Places:
    """Return the places of the columns that the learner is given: fields, and means of each."""
    parts = (state.n_columns or held) // held
    old = np.arange(parts)[:, None] * n + np.arange(held)
    return Places(old.ravel(), parts * n)


def _moved(of_columns: dict[int, T], d: int, k: int) -> dict[int, T]:
    """Return what columns have, with those after the ``d`` numbers ``k`` columns later."""
    return {at if at < d else at + k: what for at, what in of_columns.items()}


def _wider(state: ScorerState, piece: Pending, columns: Places) -> Pending:
    """Return rows that wait to be learned without the new numbers; they equal no later ones."""
    measures, marks = piece.measures.copy(), np.full_like(piece.marks, np.nan)
    if state.has_nearness and measures.shape[1] > NEARNESS:
        measures[:, NEARNESS] -= (columns.n - len(columns.old)) * UNKNOWN
    return Pending(columns.widened(piece.rows, 1), measures, piece.scores, marks)
