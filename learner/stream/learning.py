"""What happens at a learning boundary: the reference set, learning, and a new network."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.categories.layer import Categories
from faust_oslrau.learner.categories.rows import Given
from faust_oslrau.learner.queries.density import Evaluation
from faust_oslrau.learner.scoring.block import BlockMaker
from faust_oslrau.learner.scoring.tail_mass import TailMass

from .row_scores import WARM_UP
from .state import ScorerState


def learn(state: ScorerState, block: BlockMaker, position: int, latest: Evaluation | None) -> None:
    """Take the rows since the last boundary into the reference set, and learn the usual ones.

    ``position`` is that of the last of these rows in the block. ``latest`` is its evaluation;
    under full load, the evaluation of all.
    """
    rows, measures, scores, marks = map(np.concatenate, zip(*state.pending, strict=True))
    given: Given | None = None
    if state.categories is not None and state.categories.has_pending:
        given = _learn_categories(state, state.categories)
        if not state.has_units:  # nothing is learned yet: in units of categories from the beginning
            rows = state.categories.average(given.rows).rows
    if state.entities is not None and not state.entities.has_begun:
        rows = _begin_units(state, rows)
    densities, is_first = measures[:, 0], state.ranking.n == 0
    known = ~np.isnan(densities)
    change = state.drift.update(densities[known]) if state.n_records > WARM_UP else None
    if change:
        block.changes.append((position, change))
    if is_first:
        state.ranking.update(measures[known])
        scores = state.ranking.score(measures)
    usual, released = state.reference.admit(rows, scores, densities, marks, state.n_records)
    if not is_first:
        state.ranking.update(measures.compress(usual & known, axis=0))
    if state.habits is not None and state.learning:
        state.habits.learn(rows, usual)
    before = state.learner.n_records_
    if state.learning:
        state.late.update(state.own_fields(rows), state.n_records)
    _take(state, rows.compress(usual, axis=0), latest)
    if state.learning and given is not None and state.late_categories.are_kept:
        kept = np.column_stack([state.own_fields(rows), *given])
        state.late_categories.keep(kept.compress(usual, axis=0))
    for start in range(0, len(released), state.batch_size):
        _take(state, released[start : start + state.batch_size], None)
    block.learned += state.learner.n_records_ - before
    if state.late.are_enough:
        _learn_anew(state)
    block.held_back += int(np.count_nonzero(~usual))
    _end_batch(state, rows, int(block.now[position]))


def _learn_categories(state: ScorerState, categories: Categories) -> Given:
    """Let the categories learn the rows since the last boundary, and return these."""
    given = categories.pending
    if state.learning:
        codes = categories.codes_of(given.rows)
        state.late_categories.update(codes, state.n_records)
    categories.end_batch(state.learner.memory, state.late_categories.of, learning=state.learning)
    return given


def _begin_units(state: ScorerState, rows: FloatArray) -> FloatArray:
    """Return the stream's first rows (m, d) as the learner is given them, in entities' units."""
    if state.entities is None:
        return rows
    rows, simultaneous = state.entities.begin(rows), np.full(len(rows), -1)
    state.less_season(rows, simultaneous)  # changes nothing before a season is known
    return state.widened(rows, simultaneous)


def _take(state: ScorerState, rows: FloatArray, evaluation: Evaluation | None) -> None:
    if state.learning:
        state.learner.partial_fit(rows, evaluation=evaluation)
        state.late.keep(rows)
    state.neighbours.update(state.own_fields(rows))
    state.ranges.update(rows)


def _learn_anew(state: ScorerState) -> None:
    """Let a new network learn the rows with a late field.

    The one before has learned most of its structure without it, and would know it well only after
    as many records again. Units stay as they are, so that all else does but the habits of entities,
    which have learned with the network; while there were some, the mass further out was not.
    """
    state.learner = state.learner.untrained().partial_fit(
        state.late.rows, batch_size=state.batch_size
    )
    state.late.begin_anew()
    if state.habits is not None:
        state.habits.begin_anew()
        state.tail_mass = TailMass()


def _end_batch(state: ScorerState, rows: FloatArray, now: int) -> None:
    """Let the layers around the learner follow the batch of rows, at whose end it is so late."""
    if state.habits is None or not state.habits.has_habits:
        state.tail_mass.update(state.neighbours.rows, state.neighbours.n)
    state.repeats.end_batch()
    if state.history is not None:
        state.history.update(rows, now)
    if state.entities is not None:
        state.entities.update(state.n_records, state.alarm_rate, learning=state.learning)
    state.begin_batch()
