"""What happens at a learning boundary: the reference set, learning, and learning anew."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, Mask
from faust_oslrau.learner.categories.layer import Categories, Given
from faust_oslrau.learner.history.layer import History
from faust_oslrau.learner.queries.density import Evaluation
from faust_oslrau.learner.scoring.block import BlockMaker
from faust_oslrau.learner.scoring.drift import Drift
from faust_oslrau.learner.scoring.neighbours import Neighbours
from faust_oslrau.learner.scoring.ranges import Ranges
from faust_oslrau.learner.scoring.ranking import Ranking
from faust_oslrau.learner.scoring.reference import Reference
from faust_oslrau.learner.scoring.tail_mass import TailMass
from faust_oslrau.learner.seasons.layer import Seasons
from faust_oslrau.learner.seasons.recent import Rows

from .row_scores import WARM_UP, rank
from .state import FIRST_BATCH, Pending, ScorerState


def learn(state: ScorerState, block: BlockMaker, position: int, latest: Evaluation | None) -> None:
    """Take the rows since the last boundary into the reference set, and learn the usual ones.

    ``position`` is that of the last of these rows in the block. ``latest`` is its evaluation;
    under full load, the evaluation of all.
    """
    rows, measures, scores, marks = map(np.concatenate, zip(*state.pending, strict=True))
    given: FloatArray | None = None
    if state.categories is not None and state.categories.has_pending:
        given = _learn_categories(state, state.categories)
        if not state.has_units:  # nothing is learned yet: in units of categories from the beginning
            rows = state.categories.average(Given.of(given).rows).rows
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
    if state.learning and given is not None:
        kept = np.column_stack([rows, given]).compress(usual, axis=0)
        state.late_categories.keep(kept)
    for start in range(0, len(released), state.batch_size):
        _take(state, released[start : start + state.batch_size], None)
    block.learned += state.learner.n_records_ - before
    if state.late.are_enough:
        _learn_anew(state, state.late.rows)
    if state.categories is not None and state.late_categories.are_enough:
        _depend_on_late(state, state.categories)
    block.held_back += int(np.count_nonzero(~usual))
    _end_batch(state, rows)


def _learn_categories(state: ScorerState, categories: Categories) -> FloatArray:
    """Let the categories learn the rows since the last boundary; return the columns of `Given`."""
    given = categories.pending
    if state.learning:
        codes = categories.codes_of(given.rows)
        state.late_categories.update(codes, state.n_records)
    categories.end_batch(state.learner.memory, state.late_categories.of, learning=state.learning)
    return np.column_stack(given)


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


def _learn_anew(state: ScorerState, rows: FloatArray) -> None:
    """Let a new network learn the rows with a late field.

    The one before has learned most of its structure without it, and would know it well only after
    as many records again. Units stay as they are, so that all else does but the habits of entities,
    which have learned with the network; while there were some, the mass further out was not.
    """
    state.learner = state.learner.untrained().partial_fit(rows, batch_size=state.batch_size)
    state.late.begin_anew()
    if state.habits is not None:
        state.habits.begin_anew()
        state.tail_mass = TailMass()


def _depend_on_late(state: ScorerState, categories: Categories) -> None:
    """Let numbers depend on categories that came late, and learn anew what rests on their units."""
    late = state.late_categories
    learned, given = np.split(late.rows, [state.n_columns or 0], axis=1)
    late.begin_anew()
    changed = categories.learn_effects_anew(Given.of(given).rows, late.of)
    if not changed.any():
        return
    rows = _in_new_units(state, categories, Given.of(given), changed)
    same = np.tile(~changed, rows.shape[1] // len(changed))
    rows[:, same] = learned[:, same]
    state.neighbours, state.ranges, state.drift = Neighbours(), Ranges(), Drift()
    state.reference.forget_held()
    _learn_anew(state, rows)
    state.tail_mass = TailMass()
    state.neighbours.update(state.own_fields(rows))
    state.ranges.update(rows)


def _in_new_units(
    state: ScorerState, categories: Categories, given: Given, changed: Mask
) -> FloatArray:
    """Return rows as the learner is given them, in which some numbers (d,) have ``changed``."""
    rows, times = categories.average(given.rows).rows, given.times
    slots = np.maximum(given.slots, 0)
    if state.entities is not None:
        rows = state.entities.learn_anew(rows, slots, given.fresh, changed)
    if state.seasons is not None:
        times = state.seasons.known(times)
        none = np.zeros((len(rows), 3))
        rows = state.seasons.less_usual(Rows(rows, times, slots, given.fresh, none)).rows
        state.seasons.recent.forget()
    if state.history is not None:
        state.history = History(state.history.names, centred=state.entities is not None)
        rows = state.history.take(rows, slots, given.fresh, times)
        state.history.update(rows, state.clock.now)
    return rows


def _end_batch(state: ScorerState, rows: FloatArray) -> None:
    """Let the layers around the learner follow the batch of rows."""
    if state.habits is None or not state.habits.has_habits:
        state.tail_mass.update(state.neighbours.rows, state.neighbours.n)
    state.repeats.end_batch()
    if state.history is not None:
        state.history.update(rows, state.clock.now)
    if state.entities is not None:
        state.entities.update(state.n_records, state.alarm_rate, learning=state.learning)
    state.begin_batch()


def relearn(state: ScorerState) -> None:
    """Begin anew at a learning boundary with all that is in units of the network.

    A network that has learned fields with their season would find them unusual without it, and keep
    what it has learned. So a new one learns the last rows, as many as end with a whole batch, as if
    they were the first ones of the stream. Nothing is scored again.
    """
    if state.seasons is None:
        return
    _begin_anew(state)
    rows = state.seasons.recent.settled
    start, stops = 0, _boundaries(len(rows.values), state.batch_size)
    rows = rows.part(slice(len(rows.values) - stops[-1], None))
    state.n_records -= len(rows.values)
    for stop in stops:
        _take_batch(state, state.seasons, rows.part(slice(start, stop)))
        start = stop


def _begin_anew(state: ScorerState) -> None:
    state.learner = state.learner.untrained()
    state.neighbours, state.tail_mass, state.ranking = Neighbours(), TailMass(), Ranking()
    state.reference = Reference(state.reference.adapt_after)
    state.drift, state.ranges, state.next_batch = Drift(), Ranges(), FIRST_BATCH
    state.late.begin_anew()
    state.late_categories.forget_rows()
    if state.entities is not None:
        state.entities.begin_anew()
    if state.history is not None:
        state.history = History(state.history.names, centred=state.entities is not None)


def _boundaries(m: int, batch_size: int) -> list[int]:
    """Return where the whole batches of ``m`` rows end, which are at least `FIRST_BATCH`."""
    size, stops = FIRST_BATCH, [FIRST_BATCH]
    while stops[-1] + min(2 * size, batch_size) <= m:
        size = min(2 * size, batch_size)
        stops.append(stops[-1] + size)
    return stops


def _take_batch(state: ScorerState, seasons: Seasons, rows: Rows) -> None:
    """Score and learn the next batch of rows, whose scores are known."""
    if state.entities is not None:
        state.entities.revisit(rows.slots, rows.fresh)
    learned = state.widened(seasons.less_usual(rows).rows, rows.times)
    ranked = rank(state, learned, 0.0, rows.beside) if state.has_model else None
    state.collect(Pending.of(learned, state.marks(rows.values, rows.slots), ranked))
    m = len(learned)
    unseen = BlockMaker(rows.values, np.zeros((m, 3), np.int64), np.zeros((m + 1, 2), np.int64))
    learn(state, unseen, 0, None if ranked is None else ranked.evaluation)
