"""What happens at a learning boundary: the guard, learning, calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.protocol import Measured
from faust_oslrau.learner.scoring.block import BlockMaker
from faust_oslrau.learner.scoring.calibration import RecentScores
from faust_oslrau.learner.scoring.guard import FEWEST_SCORES, fence
from faust_oslrau.learner.scoring.missing import stretch
from faust_oslrau.learner.scoring.recent_records import YOUNG

from .row_scores import WARM_UP
from .state import ScorerState

FloatArray = NDArray[np.float64]


def learn(state: ScorerState, block: BlockMaker, position: int, latest: Measured | None) -> None:
    """Learn the rows since the last boundary, and calibrate with their measures.

    ``position`` is that of the last of these rows in the block. ``latest`` is its evaluation;
    under full load, the evaluation of all.
    """
    rows, measures = np.concatenate(state.pending), np.concatenate(state.pending_measures)
    if state.entities is not None and not state.entities.has_begun:
        rows, simultaneous = state.entities.begin(rows), np.full(len(rows), -1)
        state.less_season(rows, simultaneous)  # changes nothing before a season is known
        rows = state.widened(rows, simultaneous)
    factor = stretch(rows)
    comparable = state.ranking.stretched(measures, factor)
    densities, proximities = comparable[:, 0], _proximity(state, rows)
    known, first = ~np.isnan(densities), state.ranking.n == 0
    change = state.drift.update(densities[known]) if state.n_records > WARM_UP else None
    if change:
        block.changes.append((position, change))
    if first:
        _update_ranking(state, measures, factor, known)
        comparable = state.ranking.stretched(measures, factor)
    scores = state.ranking.score(comparable)
    if state.entities is not None and not first:
        scores = state.entities.given
    usual = scores >= state.recent.scores.lowest_usual
    state.missing.update(rows.compress(usual, axis=0), state.n_records)
    if state.learning:
        compared = densities if proximities is None else proximities
        known &= _learn_usual(state, rows, compared, block, latest)
    else:
        state.neighbours.update(state.own_fields(rows))
        state.ranges.update(rows.compress(usual, axis=0))
    if state.habits is None or not state.habits.has_habits:
        is_refitted = state.tail_mass.update(state.neighbours.rows, state.neighbours.n)
        if is_refitted and state.stretches is not None:
            state.stretches.follow_scores()
    p_value, n_recent = state.recent.p_value(scores), len(state.recent.scores.recent)
    known &= ~state.bursts.find(p_value, state.alarm_rate, n_recent)
    _calibrate(state, scores, comparable, proximities, known)
    if not first:
        _update_ranking(state, measures, factor, known)
    if state.history is not None:
        state.history.update(rows)
    if state.stretches is not None:
        state.stretches.update(known & (state.n_records >= WARM_UP))
    state.measure_anew()
    if state.entities is not None:
        state.entities.update(state.n_records, learning=state.learning)
    state.begin_batch()


def _learn_usual(
    state: ScorerState,
    rows: FloatArray,
    proximity: FloatArray,
    block: BlockMaker,
    latest: Measured | None,
) -> NDArray[np.bool_]:
    """Learn the rows that the guard lets pass; return whose scores count as usual (m,)."""
    ascending = _guarded(state).ascending
    # Only so many far scores may count as usual that the next far one is still an anomaly.
    room = int(state.alarm_rate * (len(ascending) + 1)) - 1
    lasting = None if state.stretches is None else state.stretches.are_lasting()
    parted = state.guard.part(rows, proximity, ascending, state.n_records, room, lasting)
    before = state.learner.n_records_
    if state.habits is not None:
        state.habits.learn(rows, parted.usual)
    _take(state, rows.compress(parted.usual, axis=0), latest)
    for start in range(0, len(parted.regime), state.batch_size):
        _take(state, parted.regime[start : start + state.batch_size], None)
    if len(parted.regime) > 0 and state.stretches is not None:
        state.stretches.forget()
    block.learned += state.learner.n_records_ - before
    block.held_back += int(np.count_nonzero(~parted.usual))
    return parted.counted


def _take(state: ScorerState, rows: FloatArray, evaluation: Measured | None) -> None:
    state.learner.partial_fit(rows, evaluation=evaluation)
    state.neighbours.update(state.own_fields(rows))
    state.ranges.update(rows)


def _calibrate(
    state: ScorerState,
    scores: FloatArray,
    measures: FloatArray,
    proximities: FloatArray | None,
    known: NDArray[np.bool_],
) -> None:
    """Add known records to the recent ones; while these are few, remove those below the fence."""
    young = len(state.densities.recent) < FEWEST_SCORES
    is_comparable = state.entities is None and state.ranking.n >= YOUNG
    scores, densities = scores[known], measures[known, 0]
    counted = measures[known] if is_comparable else None
    if state.incidents is not None:
        numbers = np.arange(state.n_records - len(known), state.n_records)
        state.incidents.usual.update(state.recent, scores, counted, numbers[known])
    state.recent.update(scores, counted)
    state.densities.update(densities)
    if proximities is not None:
        state.proximities.update(proximities[known])
    if young and state.learning:
        guarded = _guarded(state)
        usual = guarded.recent >= fence(guarded.ascending)
        state.recent.select(usual)
        state.densities.select(usual)
        if len(state.proximities.recent) > 0:
            state.proximities.select(usual)


def _update_ranking(
    state: ScorerState, measures: FloatArray, factor: FloatArray | None, usual: NDArray[np.bool_]
) -> None:
    if not usual.all():
        measures, factor = measures[usual], None if factor is None else factor[usual]
    state.ranking.update(measures, factor)


def _proximity(state: ScorerState, rows: FloatArray) -> FloatArray | None:
    """Return what the guard compares (m,) where it is not the log-density."""
    return state.learner.proximity(rows) if state.learner.n_records_ > 0 else None


def _guarded(state: ScorerState) -> RecentScores:
    """Recent values of what the guard compares."""
    return state.proximities if len(state.proximities.recent) > 0 else state.densities
