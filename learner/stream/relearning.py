"""Beginning anew with all that is in units of the network, where these have changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.categories.layer import Categories
from faust_oslrau.learner.categories.rows import Given
from faust_oslrau.learner.history.layer import History
from faust_oslrau.learner.scoring.block import BlockMaker
from faust_oslrau.learner.scoring.drift import Drift
from faust_oslrau.learner.scoring.neighbours import Neighbours
from faust_oslrau.learner.scoring.ranges import Ranges
from faust_oslrau.learner.scoring.ranking import Ranking
from faust_oslrau.learner.scoring.reference import Reference
from faust_oslrau.learner.scoring.tail_mass import TailMass
from faust_oslrau.learner.seasons.layer import Seasons
from faust_oslrau.learner.seasons.recent import Rows

from .learning import learn
from .row_scores import evaluate, rank
from .state import FIRST_BATCH, Pending, Ranked, ScorerState


def relearn(state: ScorerState, now: int) -> None:
    """Begin anew at a learning boundary where another season counts, or a late category.

    A network that has learned fields with their season would find them unusual without it, and keep
    what it has learned. So a new one learns the last rows, as many as end with a whole batch, as if
    they were the first ones of the stream. Nothing is scored again. It is ``now``, in milliseconds.
    """
    if state.seasons is not None and state.seasons.end_batch(learning=state.learning):
        _with_season(state, state.seasons, now)
    elif state.categories is not None and state.late_categories.are_enough:
        _with_late_categories(state, state.categories, now)


def _with_season(state: ScorerState, seasons: Seasons, now: int) -> None:
    """Learn the last rows less what is usual at their hour now."""
    rows = seasons.recent.settled
    _begin_anew(state)
    for at in _batches(state, len(rows.values)):
        some = rows.part(at)
        _take_batch(state, some, seasons.less_usual(some).rows, 0.0, now)


def _with_late_categories(state: ScorerState, categories: Categories, now: int) -> None:
    """Let numbers depend on late categories, and learn anew the rows that have these."""
    late, d = state.late_categories, state.n_fields or 0
    before, given = late.rows[:, :d], Given.of(late.rows[:, d:])
    late.begin_anew()
    changed = categories.learn_effects_anew(given.rows, late.of)
    if not changed.any():
        return
    found = categories.average(given.rows, entities=given.slots)
    slots, times, own = np.maximum(given.slots, 0), given.times, found.rows
    if state.entities is not None:
        own = state.entities.learn_anew(own, slots, given.fresh, changed)
    rows = Rows(own, times, slots, given.fresh, found.of_categories)
    if state.seasons is not None:
        rows = rows._replace(times=state.seasons.known(times))
        own = state.seasons.less_usual(rows).rows
        state.seasons.recent.forget()
    own[:, ~changed] = before[:, ~changed]
    slopes = found.log_jacobian
    if state.transforms.names:
        slopes = slopes + state.transforms.log_jacobian(categories.numbers(given.rows))
    _begin_anew(state)
    for at in _batches(state, len(own)):
        some = rows.part(at)._replace(values=given.rows[at])
        _take_batch(state, some, own[at], slopes[at], now)


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


def _batches(state: ScorerState, m: int) -> Iterator[slice]:
    """Return the batches in which the last of ``m`` rows are learned.

    As many as whole batches have, which are at least `FIRST_BATCH`.
    """
    size, stops = FIRST_BATCH, [0, FIRST_BATCH]
    while stops[-1] + min(2 * size, state.batch_size) <= m:
        size = min(2 * size, state.batch_size)
        stops.append(stops[-1] + size)
    state.n_records -= stops[-1]
    first = m - stops[-1]
    return (slice(first + start, first + stop) for start, stop in pairwise(stops))


def _take_batch(
    state: ScorerState, rows: Rows, own: FloatArray, slopes: FloatArray | float, now: int
) -> None:
    """Score and learn the next batch of rows, whose scores are known.

    ``own`` (m, d) are these rows less what is usual at their hour, ``slopes`` (m,) as `rank` has
    them.
    """
    if state.entities is not None:
        state.entities.revisit(rows.slots, rows.fresh)
    learned = state.widened(own, rows.times)
    ranked: Ranked | None = None
    if state.has_model:
        ranked = rank(state, learned, evaluate(state, learned), slopes, rows.beside)
    state.collect(Pending.of(learned, state.marks(rows.values, rows.slots), ranked))
    m = len(learned)
    unseen = BlockMaker(rows.values, np.zeros((m, 3), np.int64), np.full((m + 1, 2), now))
    learn(state, unseen, 0, None if ranked is None else ranked.evaluation)
